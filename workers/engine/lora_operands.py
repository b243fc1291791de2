"""An adapter's matrices as forward passes multiply with them: in the base model's dtype, a group at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.engine.adapter_layout import Matrices
from workers.engine.frozen_linear import computed_in
from workers.engine.kernels.packed_adapter import PackedAdapter


@dataclass(frozen=True)
class Operand:
    """Of a group of n layers of rank R, S = n R: `a_SI` is scale * A, `b_OS` has the Bs as its diagonal blocks. Or of
    several adapters, with a first dimension over them. In the dtype that products are computed in."""

    a_SI: Tensor
    b_OS: Tensor


class LoraOperands:
    """Follows the weights: made again when they have changed. The fp32 weights stay the truth; under a bf16 base the
    operands are rounded to bf16, as autocast would."""

    def __init__(self, weights: Tensor, matrices: Sequence[Matrices], scale: float) -> None:
        self._weights, self._matrices, self._scale = weights, matrices, scale
        self._made: dict[int, Operand] = {}
        self._made_of: tuple[int, torch.dtype] | None = None
        self._packed: dict[tuple[torch.dtype, bool], PackedAdapter] = {}

    @property
    def version(self) -> int:
        """Another one whenever the weights have changed."""
        return self._weights._version

    @property
    def size(self) -> int:
        """Elements of all of them together."""
        return sum(m.A.numel() + len(m.A) * sum(len(b) for b in m.Bs) for m in self._matrices)

    def of(self, dtype: torch.dtype) -> list[Operand]:
        """One of each group."""
        return [self.one(group, dtype) for group in range(len(self._matrices))]

    def one(self, group: int, dtype: torch.dtype) -> Operand:
        wanted = (self.version, dtype)
        if self._made_of != wanted:
            self._made, self._made_of = {}, wanted
        if group not in self._made:
            self._made[group] = self._operand(self._matrices[group], dtype)
        return self._made[group]

    def packed(self, dtype: torch.dtype, slopes: bool) -> PackedAdapter:
        """As `of`, for our kernel: for the product, or for the `slopes` of its input."""
        if (dtype, slopes) not in self._packed:
            self._packed[dtype, slopes] = PackedAdapter(self._matrices, self._scale, dtype, slopes)
        self._packed[dtype, slopes].follow(self.version)
        return self._packed[dtype, slopes]

    def _operand(self, matrices: Matrices, dtype: torch.dtype) -> Operand:
        a_SI = matrices.A.detach() * self._scale
        b_OS = torch.block_diag(*(b.detach() for b in matrices.Bs))
        wide = computed_in(a_SI.device, dtype)
        return Operand(a_SI.to(dtype).to(wide), b_OS.to(dtype).to(wide))
