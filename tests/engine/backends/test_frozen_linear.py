import pytest
import torch

from tests.engine.backend import backend_of
from tests.engine.tolerances import DTYPES, assert_within, of_products, rounded
from workers.engine.backends.backend import FrozenLinear
from workers.engine.backends.torch import linear, products
from workers.engine.backends.torch.products import grad_product, product

# The third is one for which oneDNN sums a single row in another order.
SHAPES = [(96, 64), (3072, 576), (576, 1536)]


pytestmark = pytest.mark.usefixtures("kernels")


def layer_of(outputs: int, inputs: int, dtype: torch.dtype) -> tuple[FrozenLinear, torch.Tensor]:
    torch.manual_seed(0)
    weight_OI = torch.randn(outputs, inputs).to(dtype)
    return backend_of(dtype).linear(weight_OI), weight_OI


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
    layer = backend_of(dtype).linear(weight_OI, bias_O if bias else None)
    x = torch.randn(10, 64).to(dtype)
    plain = x.double().requires_grad_()
    expected = plain @ weight_OI.double().T
    if bias:
        expected = expected + bias_O.double()
    upstream = torch.randn(10, 90).to(dtype)
    y, gradient = layer.product(x), layer.transposed().product(upstream)
    (expected_grad,) = torch.autograd.grad(expected, plain, upstream.double())
    off = of_products(x, weight_OI, *([bias_O.expand(10, -1)] if bias else []))
    assert_within(y, expected.detach(), rounded(expected.detach(), off, dtype))
    assert_within(gradient, expected_grad, rounded(expected_grad, of_products(upstream, weight_OI.T), dtype))


def test_no_rows_is_no_rows() -> None:
    layer, _ = layer_of(96, 64, torch.float32)
    assert layer.product(torch.zeros(0, 64)).shape == (0, 96)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
def test_what_is_added_is_added_before_the_one_rounding(dtype: torch.dtype, bias: bool) -> None:
    assert_rounded_once(dtype, bias)


@pytest.fixture
def no_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU without instructions for bf16."""
    for module in (linear, products):
        monkeypatch.setattr(module, "is_fast", lambda _, dtype: dtype is torch.float32)


@pytest.mark.usefixtures("no_bf16")
@pytest.mark.parametrize("bias", [False, True])
def test_a_cpu_without_instructions_for_bf16_rounds_once_too(bias: bool) -> None:
    assert_rounded_once(torch.bfloat16, bias)


def assert_rounded_once(dtype: torch.dtype, bias: bool) -> None:
    torch.manual_seed(0)
    weight_OI, x, plus = torch.randn(70, 64).to(dtype), torch.randn(5, 64).to(dtype), torch.randn(5, 70).to(dtype)
    bias_O = torch.randn(70).to(dtype)
    added = [plus, bias_O.expand(5, -1)] if bias else [plus]
    exact = sum((part.double() for part in added), start=x.double() @ weight_OI.double().T)
    y = backend_of(dtype).linear(weight_OI, bias_O if bias else None).product(x, plus)
    assert y.dtype is dtype
    assert_within(y, exact, rounded(exact, of_products(x, weight_OI, *added), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adds", [False, True])
def test_gradients_of_a_matrix_in_any_layout_are_those_of_float64(dtype: torch.dtype, adds: bool) -> None:
    torch.manual_seed(0)
    grad, plus = torch.randn(9, 70).to(dtype), torch.randn(9, 64).to(dtype)
    for weight_OI in (torch.randn(70, 64).to(dtype), torch.randn(64, 70).to(dtype).T):
        added = [plus] if adds else []
        exact = sum((part.double() for part in added), start=grad.double() @ weight_OI.double())
        found, off = grad_product(grad, weight_OI, *added), of_products(grad, weight_OI.T, *added)
        assert_within(found, exact, rounded(exact, off, found.dtype))


@pytest.mark.usefixtures("no_bf16")
def test_a_cpu_without_instructions_for_bf16_adds_an_adapter_s_part_unrounded() -> None:
    torch.manual_seed(0)
    h_NS, b_OS, plus = torch.randn(5, 16), torch.randn(70, 16).bfloat16(), torch.randn(5, 70).bfloat16()
    exact = h_NS.double() @ b_OS.double().T + plus.double()
    assert_within(product(h_NS, b_OS, plus), exact, of_products(h_NS, b_OS, plus))


@pytest.mark.parametrize("x_MI", [torch.zeros(2, 64).bfloat16(), torch.zeros(2, 62)])
def test_what_is_not_of_the_layer_s_dtype_and_width_is_not_read(x_MI: torch.Tensor) -> None:
    layer, _ = layer_of(96, 64, torch.float32)
    with pytest.raises((AssertionError, RuntimeError)):
        layer.product(x_MI)
