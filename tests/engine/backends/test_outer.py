import pytest
import torch

from tests.engine.backend import backend_of
from tests.engine.tolerances import DTYPES, assert_within, of_products


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "width", "columns"), [(1, 1, 1), (7, 3, 37), (300, 16, 200), (50, 23, 64)])
@pytest.mark.usefixtures("kernels")
def test_it_is_the_sum_of_float64(rows: int, width: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    # Parts of wider rows, as a group's columns of h are.
    u_NS, v_NC = (
        torch.randn(rows, width + 5).to(dtype)[:, 2 : width + 2],
        torch.randn(rows, columns + 3).to(dtype)[:, 3:],
    )
    expected = 0.5 * u_NS.double().T @ v_NC.double()
    sums = backend_of(dtype).outer(u_NS, v_NC, 0.5)
    assert sums.dtype is torch.float32
    assert_within(sums, expected, 0.5 * of_products(u_NS.T, v_NC.T))
