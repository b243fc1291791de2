"""An adapter's matrices as torch's products read them: in the base model's dtype, a group at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.engine.adapters.layout import Matrices
from workers.engine.backends.torch.products import computed_in


@dataclass(frozen=True)
class Operand:
    """Of a group of n layers of rank R, S = n R: `a_SI` is scale * A, `b_OS` has the Bs as its diagonal blocks. Or of
    several adapters, with a first dimension over them. In the dtype that products are computed in."""

    a_SI: Tensor
    b_OS: Tensor


class LoraOperands:
    """A layout of `LowRankWeights`: an operand for each group, made when it is first asked for. Under a bf16 base they
    are rounded to bf16, as autocast would."""

    def __init__(self, matrices: Sequence[Matrices], scale: float, dtype: torch.dtype) -> None:
        self._matrices, self._scale, self._dtype = matrices, scale, dtype
        self._made: dict[int, Operand] = {}
        self._version = -1

    def follow(self, version: int) -> None:
        if self._version != version:
            self._made, self._version = {}, version

    def all(self) -> list[Operand]:
        """One of each group."""
        return [self[group] for group in range(len(self._matrices))]

    def __getitem__(self, group: int) -> Operand:
        if group not in self._made:
            self._made[group] = self._operand(self._matrices[group])
        return self._made[group]

    def _operand(self, matrices: Matrices) -> Operand:
        a_SI = matrices.A.detach() * self._scale
        b_OS = torch.block_diag(*(b.detach() for b in matrices.Bs))
        wide = computed_in(a_SI.device, self._dtype)
        return Operand(a_SI.to(self._dtype).to(wide), b_OS.to(self._dtype).to(wide))
