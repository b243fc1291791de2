import pytest
import torch

from workers.engine.outer import outer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width", "columns"), [(1, 1, 1), (7, 3, 37), (300, 16, 200), (50, 23, 64)])
def test_it_is_the_sum_of_float64(kernels: str, rows: int, width: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    # Parts of wider rows, as a group's columns of h are.
    u_NS, v_NC = (
        torch.randn(rows, width + 5).to(dtype)[:, 2 : width + 2],
        torch.randn(rows, columns + 3).to(dtype)[:, 3:],
    )
    expected = 0.5 * u_NS.double().T @ v_NC.double()
    # Through torch the sum itself is rounded to bf16.
    exact = kernels == "native" or dtype is torch.float32
    sums = outer(u_NS, v_NC, 0.5)
    assert sums.dtype is torch.float32
    torch.testing.assert_close(sums.double(), expected, rtol=1e-5 if exact else 2**-7, atol=1e-4 if exact else 1e-2)
