import pytest
import torch

from workers.engine.frozen_linear import FrozenLinear

DTYPES = [torch.float32, torch.bfloat16]
# The third is one for which oneDNN sums a single row in another order.
SHAPES = [(96, 64), (3072, 576), (576, 1536)]


pytestmark = pytest.mark.usefixtures("kernels")


def layer_of(outputs: int, inputs: int, dtype: torch.dtype) -> tuple[FrozenLinear, torch.Tensor]:
    torch.manual_seed(0)
    weight_OI = torch.randn(outputs, inputs).to(dtype)
    return FrozenLinear(weight_OI), weight_OI


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_is_the_same_to_the_bit_in_any_batch(shape: tuple[int, int], dtype: torch.dtype) -> None:
    layer, _ = layer_of(*shape, dtype)
    x_MI = torch.randn(130, shape[1]).to(dtype)
    whole_MO = layer.product(x_MI)
    for rows in (1, 2, 3, 7, 16, 33, 64, 129):
        assert torch.equal(layer.product(x_MI[:rows]), whole_MO[:rows]), rows


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
def test_products_and_their_gradients_are_those_of_float64(dtype: torch.dtype, bias: bool) -> None:
    torch.manual_seed(0)
    weight_OI, bias_O = torch.randn(90, 64).to(dtype), torch.randn(90).to(dtype)
    layer = FrozenLinear(weight_OI, bias_O if bias else None)
    x = torch.randn(10, 64).to(dtype)
    plain = x.double().requires_grad_()
    expected = plain @ weight_OI.double().T
    if bias:
        expected = expected + bias_O.double()
    upstream = torch.randn(10, 90).to(dtype)
    y, gradient = layer.product(x), layer.transposed().product(upstream)
    (slope,) = torch.autograd.grad(expected, plain, upstream.double())
    rtol, atol = (1e-5, 1e-4) if dtype is torch.float32 else (1e-2, 0.1)
    torch.testing.assert_close(y.double(), expected.detach(), rtol=rtol, atol=atol)
    torch.testing.assert_close(gradient.double(), slope, rtol=rtol, atol=atol)


def test_no_rows_is_no_rows() -> None:
    layer, _ = layer_of(96, 64, torch.float32)
    assert layer.product(torch.zeros(0, 64)).shape == (0, 96)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_added_is_added_before_the_one_rounding(dtype: torch.dtype) -> None:
    layer, weight_OI = layer_of(70, 64, dtype)
    x, plus = torch.randn(5, 64).to(dtype), torch.randn(5, 70).to(dtype)
    exact = x.double() @ weight_OI.double().T + plus.double()
    rtol = 1e-5 if dtype is torch.float32 else 2**-8
    torch.testing.assert_close(layer.product(x, plus).double(), exact, rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("x_MI", [torch.zeros(2, 64).bfloat16(), torch.zeros(2, 62)])
def test_what_is_not_of_the_layer_s_dtype_and_width_is_not_read(x_MI: torch.Tensor) -> None:
    layer, _ = layer_of(96, 64, torch.float32)
    with pytest.raises((AssertionError, RuntimeError)):
        layer.product(x_MI)
