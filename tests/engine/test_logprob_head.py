import numpy as np
import pytest
import torch

from tests.engine.backend import backend_of
from tests.engine.tolerances import DTYPES, FUNCTION, assert_within, gamma, long_gamma, rounded
from workers.engine.decoder import logprob_head
from workers.engine.decoder.head import Head
from workers.engine.decoder.logprob_head import target_logprobs

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]])


def head_of(weight_VD: torch.Tensor, scale: float = 1.0, softcap: float | None = None) -> Head:
    backend = backend_of(weight_VD.dtype)
    return Head(backend.linear(weight_VD), backend, scale, softcap)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_log_softmax_is_taken_in_fp32_whatever_the_models_dtype(dtype: torch.dtype) -> None:
    head = head_of(torch.eye(4, dtype=dtype))
    logprobs, entropies = target_logprobs(LOGITS.to(dtype), head, torch.tensor([0]))
    assert logprobs.dtype is torch.float32
    assert logprobs.item() == pytest.approx(-0.440190, abs=1e-6)
    p = np.exp([2, 1, 0, -1]) / np.exp([2, 1, 0, -1]).sum()
    assert entropies.item() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-6)


def test_probabilities_of_the_whole_vocabulary_sum_to_one() -> None:
    hidden_ND = torch.randn(1, 16).bfloat16().expand(500, -1)
    head = head_of(torch.randn(500, 16).bfloat16())
    logprobs, _ = target_logprobs(hidden_ND, head, torch.arange(500))
    assert logprobs.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def logits_and_targets(rows: int, vocabulary: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows + vocabulary)
    logits = (torch.randn(rows, vocabulary, generator=generator) * 4 - 20).to(dtype)
    return logits, torch.randint(0, vocabulary, (rows,), generator=generator)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "vocabulary"), [(1, 1), (7, 5), (3, 256), (2, 257), (5, 49_153), (2, 151_936)])
def test_what_logits_say_is_what_float64_makes_of_them(
    kernels: str, rows: int, vocabulary: int, dtype: torch.dtype
) -> None:
    logits, targets = logits_and_targets(rows, vocabulary, dtype)
    wide, exact = logits.double(), logits.double().log_softmax(1)
    onehot = torch.zeros_like(exact).scatter_(1, targets[:, None], 1)
    off_R1, mean_off_R1 = logprobs_off(wide, is_summed_in_fp64=kernels == "native")
    logprobs, entropies = backend_of().target_logprobs(logits, targets, computes_grad=True)
    assert_within(logprobs[:, None], exact.gather(1, targets[:, None]), off_R1)
    assert_within(entropies[:, None], -(exact.exp() * exact).sum(1, keepdim=True), off_R1 + mean_off_R1)
    grads = onehot - exact.exp()
    assert_within(logits, grads, rounded(grads, exact.exp() * off_R1 + gamma(FUNCTION) * grads.abs(), dtype))


def logprobs_off(logits_RV: torch.Tensor, *, is_summed_in_fp64: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """How far a row's logprobs may be, and its mean logit by its probabilities, each [R, 1]."""
    summed = 0.0 if is_summed_in_fp64 else long_gamma(logits_RV.shape[1])
    furthest_R1 = logits_RV.amax(1, keepdim=True) - logits_RV.amin(1, keepdim=True)
    # A difference to the largest logit, its exp, the sum of them, its log; and two more differences.
    total_R1 = gamma(1) * furthest_R1 + gamma(2 * FUNCTION) + summed
    off_R1 = total_R1 + gamma(2) * (furthest_R1 + logits_RV.logsumexp(1, keepdim=True).abs())
    return off_R1, (off_R1 + summed) * (logits_RV.softmax(1) * logits_RV.abs()).sum(1, keepdim=True)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_likely_target_leaves_a_small_gradient_that_is_exact(dtype: torch.dtype) -> None:
    logits = torch.tensor([[9.0, 1.0, 0.0]]).to(dtype)
    probabilities = logits.double().softmax(1)
    off_R1, _ = logprobs_off(logits.double(), is_summed_in_fp64=False)
    grads = torch.tensor([[1.0, 0.0, 0.0]]) - probabilities
    backend_of().target_logprobs(logits, torch.tensor([0]), computes_grad=True)
    assert_within(logits, grads, rounded(grads, probabilities * off_R1, dtype))


@pytest.mark.usefixtures("kernels")
def test_impossible_tokens_change_nothing() -> None:
    logits = torch.tensor([[2.0, -float("inf"), 1.0, 0.0, -float("inf"), -1.0]])
    logprobs, _ = backend_of().target_logprobs(logits, torch.tensor([0]))
    assert logprobs.item() == pytest.approx(-0.440190, abs=1e-6)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(dtype: torch.dtype) -> None:
    logits, targets = logits_and_targets(9, 10_007, dtype)
    grads = logits.clone()
    whole = backend_of().target_logprobs(grads, targets, computes_grad=True)
    for row in (0, 4, 8):
        part = slice(row, row + 1)
        grad = logits[part].clone()
        alone = backend_of().target_logprobs(grad, targets[part], computes_grad=True)
        assert all(torch.equal(one, all_[part]) for one, all_ in zip((*alone, grad), (*whole, grads), strict=True))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("scale", "softcap"), [(1.0, None), (0.25, None), (1.5, 2.0)])
def test_the_gradient_is_that_of_plain_log_softmax_in_any_number_of_chunks(
    scale: float, softcap: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    hidden_ND, head_VD, targets = torch.randn(7, 8), torch.randn(11, 8), torch.arange(7)
    upstream = torch.randn(7)
    plain = hidden_ND.double().requires_grad_()
    logits = plain @ head_VD.double().T * scale
    capped = logits if softcap is None else torch.tanh(logits / softcap) * softcap
    expected = torch.log_softmax(capped, 1)[torch.arange(7), targets]
    (grad,) = torch.autograd.grad(expected, plain, upstream.double())
    monkeypatch.setattr(logprob_head, "CHUNK_ELEMENTS", 3 * 11)
    monkeypatch.setattr(logprob_head, "PACKED_CHUNK_ELEMENTS", 3 * 11)
    ours = hidden_ND.clone().requires_grad_()
    logprobs, _ = target_logprobs(ours, head_of(head_VD, scale, softcap), targets)
    (gradient,) = torch.autograd.grad(logprobs, ours, upstream)
    torch.testing.assert_close(logprobs.detach(), expected.detach().float())
    torch.testing.assert_close(gradient, grad.float())


def test_no_tokens_is_no_logprobs() -> None:
    logprobs, entropies = target_logprobs(torch.zeros(0, 4), head_of(torch.eye(4)), torch.zeros(0, dtype=torch.int64))
    assert logprobs.shape == entropies.shape == (0,)
