import pytest
import torch
from torch import Tensor

from tests.engine.backend import backend_of
from tests.engine.exactness import DTYPES, assert_rounded
from workers.engine.decoder.rotary import Rotation

ROUNDED_PRODUCTS = {torch.float32: 2e-6, torch.bfloat16: 2e-2}


def angles(length: int, pairs: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines, as the first halves of tables that have each twice."""
    angles_TC = torch.arange(length)[:, None] * 10.0 ** -torch.linspace(0, 4, pairs)
    return tuple(torch.cat([f(angles_TC)] * 2, 1).to(dtype).chunk(2, -1)[0] for f in (torch.cos, torch.sin))  # type: ignore[return-value]


def exact(x_THD: Tensor, cos_TC: Tensor, sin_TC: Tensor) -> Tensor:
    """As complex numbers."""
    first, second = x_THD.double().chunk(2, -1)
    turned = torch.complex(first, second) * torch.complex(cos_TC.double(), sin_TC.double())[:, None]
    return torch.cat([turned.real, turned.imag], -1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("length", "heads", "pairs"), [(1, 12, 32), (7, 3, 5), (33, 2, 20), (300, 12, 64)])
def test_vectors_rotate_and_their_gradients_rotate_back(
    kernels: str, length: int, heads: int, pairs: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    tables = angles(length, pairs, dtype)
    qkv_THD = torch.randn(length, heads + 2, 2 * pairs).to(dtype)
    upstream = torch.randn(length, heads, 2 * pairs).to(dtype)
    ours, wide = qkv_THD.clone().requires_grad_(), qkv_THD.double().requires_grad_()
    y, expected = Rotation(*tables, backend_of(dtype))(ours[:, :heads]), exact(wide[:, :heads], *tables)
    (expected_grad,) = torch.autograd.grad(expected, wide, upstream.double())
    (gradient,) = torch.autograd.grad(y, ours, upstream)
    for turned, reference in ((y.detach(), expected.detach()), (gradient, expected_grad)):
        if kernels == "native":
            assert_rounded(turned, reference, dtype)
        else:  # Sums of two rounded products: where they cancel, their errors stay.
            torch.testing.assert_close(turned.double(), reference, rtol=2**-7, atol=ROUNDED_PRODUCTS[dtype])


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_token_has_the_same_bits_alone_and_in_a_batch(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    cos_TC, sin_TC = angles(200, 37, dtype)
    x_THD = torch.randn(200, 11, 74).to(dtype)
    with torch.no_grad():
        whole_THD = Rotation(cos_TC, sin_TC, backend_of(dtype))(x_THD)
        for token in (0, 7, 199):
            part = slice(token, token + 1)
            assert torch.equal(Rotation(cos_TC[part], sin_TC[part], backend_of(dtype))(x_THD[part]), whole_THD[part])


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_q_k_and_v_are_split_with_q_and_k_rotated_and_one_gradient(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rotation = Rotation(*angles(9, 8, dtype), backend_of(dtype))
    qkv_THD, upstream = torch.randn(9, 8, 16).to(dtype).requires_grad_(), torch.randn(9, 8, 16).to(dtype)
    together = rotation.split(qkv_THD, 4, 2)
    one_by_one = rotation(qkv_THD[:, :4]), rotation(qkv_THD[:, 4:6]), qkv_THD[:, 6:]
    grads = [
        torch.autograd.grad(parts, qkv_THD, torch.split(upstream, [4, 2, 2], 1))[0] for parts in (together, one_by_one)
    ]
    for part, expected in zip((*together, grads[0]), (*one_by_one, grads[1]), strict=True):
        assert torch.equal(part, expected)
