"""Muon against torch's own, which iterates in bfloat16, and against the singular value decomposition."""

import pytest
import torch

from domain.optim_step import Muon, OptimStepRequest
from domain.session import LoraConfig
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.layout import Group, Shape
from workers.engine.training.optim_step import optim_step
from workers.engine.training.optimizers import orthogonal

GROUPS = (Group((Shape("up", 24, 12),)), Group((Shape("down", 12, 24),)))


def adapter() -> Adapter:
    made = Adapter(GROUPS, LoraConfig(rank=8, alpha=8), 0, torch.device("cpu"))
    with torch.no_grad():
        made.weights.normal_(generator=torch.Generator().manual_seed(9))
    return made


@pytest.mark.parametrize(("match_adam", "theirs"), [(True, "match_rms_adamw"), (False, "original")])
def test_steps_equal_those_of_torch_within_its_bfloat16(match_adam: bool, theirs: str) -> None:
    ours = adapter()
    matrices = [torch.nn.Parameter(leaf.detach().clone()) for leaf in ours.leaves]
    reference = torch.optim.Muon(matrices, lr=0.02, weight_decay=0.1, momentum=0.9, ns_steps=5, adjust_lr_fn=theirs)
    request = OptimStepRequest(learning_rate=0.02, muon=Muon(momentum=0.9, match_adam=match_adam))
    for seed in range(3):
        ours.accumulate(torch.randn(len(ours.weights), generator=torch.Generator().manual_seed(seed)))
        gradients = [leaf.clone() for matrices in ours.layout.matrices(ours.gradients) for leaf in matrices.leaves]
        for matrix, gradient in zip(matrices, gradients, strict=True):
            matrix.grad = gradient
        reference.step()  # type: ignore[no-untyped-call]
        optim_step(ours, request)
    for leaf, matrix in zip(ours.leaves, matrices, strict=True):
        torch.testing.assert_close(leaf.detach(), matrix.detach(), rtol=0.0, atol=2e-3)


def test_the_direction_keeps_the_singular_vectors_and_makes_the_values_about_one() -> None:
    matrix = torch.randn(6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    for wanted, out in ((matrix, orthogonal(matrix, 8)), (matrix.mT, orthogonal(matrix.mT, 8).mT)):
        values = u.mT @ out @ v.mT
        assert torch.allclose(values, values.diag().diag(), atol=1e-6), wanted.shape
        assert ((values.diag() > 0.6) & (values.diag() < 1.3)).all()


def test_a_matrix_without_gradient_does_not_move_save_for_its_decay() -> None:
    ours = adapter()
    before = ours.weights.detach().clone()
    ours.accumulate(torch.zeros_like(ours.gradients))
    result = optim_step(ours, OptimStepRequest(learning_rate=0.1, weight_decay=0.5, muon=Muon()))
    torch.testing.assert_close(ours.weights.detach(), before * 0.95)
    assert result.step == 1


@pytest.mark.parametrize("size", [1e-3, 1e25])
def test_the_direction_does_not_depend_on_the_gradients_size(size: float) -> None:
    matrix = torch.randn(8, 24, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(orthogonal(size * matrix, 5), orthogonal(matrix, 5), rtol=1e-3, atol=1e-4)
