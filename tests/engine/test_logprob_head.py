import numpy as np
import pytest
import torch

from workers.engine import logprob_head
from workers.engine.frozen_linear import FrozenLinear
from workers.engine.logprob_head import target_logprobs

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_softmax_is_taken_in_fp32_whatever_the_models_dtype(dtype: torch.dtype) -> None:
    head = FrozenLinear(torch.eye(4, dtype=dtype))
    logprobs, entropies = target_logprobs(LOGITS.to(dtype), head, torch.tensor([0]))
    assert logprobs.dtype is torch.float32
    assert logprobs.item() == pytest.approx(-0.440190, abs=1e-6)
    p = np.exp([2, 1, 0, -1]) / np.exp([2, 1, 0, -1]).sum()
    assert entropies.item() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-6)


def test_probabilities_of_the_whole_vocabulary_sum_to_one() -> None:
    hidden_ND = torch.randn(1, 16).bfloat16().expand(500, -1)
    logprobs, _ = target_logprobs(hidden_ND, FrozenLinear(torch.randn(500, 16).bfloat16()), torch.arange(500))
    assert logprobs.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_the_gradient_is_that_of_plain_log_softmax_in_any_number_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    hidden_ND, head_VD, targets = torch.randn(7, 8), torch.randn(11, 8), torch.arange(7)
    upstream = torch.randn(7)
    plain = hidden_ND.double().requires_grad_()
    expected = torch.log_softmax(plain @ head_VD.double().T, 1)[torch.arange(7), targets]
    (slope,) = torch.autograd.grad(expected, plain, upstream.double())
    monkeypatch.setattr(logprob_head, "CHUNK_ELEMENTS", 3 * 11)
    ours = hidden_ND.clone().requires_grad_()
    logprobs, _ = target_logprobs(ours, FrozenLinear(head_VD), targets)
    (gradient,) = torch.autograd.grad(logprobs, ours, upstream)
    torch.testing.assert_close(logprobs.detach(), expected.detach().float())
    torch.testing.assert_close(gradient, slope.float())


def test_no_tokens_is_no_logprobs() -> None:
    logprobs, entropies = target_logprobs(
        torch.zeros(0, 4), FrozenLinear(torch.eye(4)), torch.zeros(0, dtype=torch.int64)
    )
    assert logprobs.shape == entropies.shape == (0,)
