"""How tensors lie in memory for the kernels that take a stride from token to token."""

from torch import Tensor


def by_token(x: Tensor) -> Tensor:
    """x [T, D] or [T, H, D] itself where the numbers of each token lie together, else a copy."""
    if x.is_contiguous():
        return x
    _, *strides = x.stride()
    return x if strides in ([1], [x.shape[-1], 1]) else x.contiguous()
