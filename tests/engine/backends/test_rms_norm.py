import pytest
import torch
from torch import Tensor

from tests.engine.backend import backend_of
from tests.engine.exactness import DTYPES, assert_rounded
from workers.engine.decoder.rms_norm import RmsNorm

EPS = 1e-5


def drawn(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def exact(x: Tensor, weight: Tensor) -> Tensor:
    wide = x.double()
    return wide / (wide.square().mean(-1, keepdim=True) + EPS).sqrt() * weight.double()


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 576), (7, 33), (130, 64), (300, 576), (5, 3, 16), (7, 4, 40)])
def test_it_is_that_of_float64_and_so_is_its_gradient(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, upstream = drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype) * 0.7
    weight = drawn(shape[-1], dtype=dtype)
    norm = RmsNorm(weight, EPS, backend_of(dtype))
    wide, ours = x.double().requires_grad_(), x.clone().requires_grad_()
    y = norm(ours)
    assert_rounded(y.detach(), exact(x, weight), dtype)
    (expected_grad,) = torch.autograd.grad(exact(wide, weight), wide, upstream.double())
    (gradient,) = torch.autograd.grad(y, ours, upstream)
    assert_rounded(gradient, expected_grad, dtype)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_heads_are_read_where_they_lie_among_others(dtype: torch.dtype) -> None:
    qkv_THD, norm = drawn(6, 9, 40, dtype=dtype), RmsNorm(drawn(40, dtype=dtype), EPS, backend_of(dtype))
    with torch.no_grad():
        for part in (qkv_THD[:, :4], qkv_THD[:, 4:6], qkv_THD[2:5, 4:7], qkv_THD[::2, :4]):
            assert torch.equal(norm(part), norm(part.clone()))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(dtype: torch.dtype) -> None:
    x, norm = drawn(300, 577, dtype=dtype), RmsNorm(drawn(577, dtype=dtype), EPS, backend_of(dtype))
    with torch.no_grad():
        whole = norm(x)
        for row in (0, 1, 150, 299):
            assert torch.equal(norm(x[row : row + 1]), whole[row : row + 1])


@pytest.mark.usefixtures("kernels")
def test_no_rows_is_no_rows() -> None:
    assert RmsNorm(torch.ones(8), EPS, backend_of())(torch.zeros(0, 8)).shape == (0, 8)
