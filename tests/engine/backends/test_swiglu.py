import pytest
import torch
from torch import Tensor

from tests.engine.backend import backend_of
from tests.engine.exactness import DTYPES, assert_rounded
from workers.engine.decoder.swiglu import swiglu


def exact(gate_up_TF: Tensor) -> Tensor:
    gate, up = gate_up_TF.double().chunk(2, -1)
    return gate / (1 + (-gate).exp()) * up


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("length", "width"), [(1, 1536), (7, 5), (3, 33), (120, 1536)])
def test_it_is_that_of_float64_and_so_is_its_gradient(length: int, width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    gate_up_TF, upstream = (torch.randn(length, 2 * width) * 3).to(dtype), torch.randn(length, width).to(dtype)
    ours, wide = gate_up_TF.clone().requires_grad_(), gate_up_TF.double().requires_grad_()
    y, expected = swiglu(ours, backend_of(dtype)), exact(wide)
    # torch rounds silu(gate), and a product with the gradient, on the way.
    assert_rounded(y.detach(), expected.detach(), dtype, roundings=2)
    (expected_grad,) = torch.autograd.grad(expected, wide, upstream.double())
    (gradient,) = torch.autograd.grad(y, ours, upstream)
    assert_rounded(gradient, expected_grad, dtype, roundings=3)


@pytest.mark.usefixtures("kernels")
def test_large_gates_are_let_through_or_shut() -> None:
    gate_up = torch.tensor([[-1e4, -100.0, -20.0, 0.0, 20.0, 100.0, 1e4, *[3.0] * 7]]).requires_grad_()
    y = swiglu(gate_up, backend_of())
    torch.testing.assert_close(y, torch.tensor([[0.0, 0.0, -1.23669e-7, 0.0, 60.0, 300.0, 3e4]]), rtol=1e-5, atol=1e-20)
    (gradient,) = torch.autograd.grad(y.sum(), gate_up)
    torch.testing.assert_close(gradient[0, :7], torch.tensor([0, 0, -1.174855e-7, 1.5, 3, 3, 3]), rtol=1e-5, atol=1e-20)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x_TF = torch.randn(200, 2 * 777).to(dtype)
    with torch.no_grad():
        whole_TF = swiglu(x_TF, backend_of(dtype))
        for row in (0, 1, 100, 199):
            assert torch.equal(swiglu(x_TF[row : row + 1], backend_of(dtype)), whole_TF[row : row + 1])
