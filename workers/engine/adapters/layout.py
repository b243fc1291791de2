"""Where an adapter's matrices lie in its flat vectors."""

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """Sizes of an adapted linear layer, and its name in the model ("model.layers.0.self_attn.q_proj")."""

    name: str
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Group:
    """Adapted layers that read the same input and are computed as one product; each has matrices of its own."""

    shapes: tuple[Shape, ...]

    @property
    def inputs(self) -> int:
        return self.shapes[0].inputs


@dataclass(frozen=True)
class Pair:
    """A [rank, inputs] and B [outputs, rank] of one layer: views of a flat vector."""

    A: Tensor
    B: Tensor


@dataclass(frozen=True)
class Matrices:
    """Of a group of n layers: A [n * rank, inputs], the layers' A stacked, and a B [outputs, rank] of each layer."""

    A: Tensor
    Bs: tuple[Tensor, ...]

    @property
    def pairs(self) -> list[Pair]:
        parts = self.A.split(len(self.A) // len(self.Bs))
        return [Pair(a, b) for a, b in zip(parts, self.Bs, strict=True)]

    @property
    def leaves(self) -> list[Tensor]:
        """The tensors to differentiate by."""
        return [self.A, *self.Bs]


@dataclass(frozen=True)
class AdapterLayout:
    """Group after group: the A of all its layers, then their Bs."""

    groups: tuple[Group, ...]
    rank: int

    @cached_property
    def shapes(self) -> list[Shape]:
        return [shape for group in self.groups for shape in group.shapes]

    @cached_property
    def size(self) -> int:
        return sum(self.rank * (shape.inputs + shape.outputs) for shape in self.shapes)

    def matrices(self, flat: Tensor) -> list[Matrices]:
        """Views of `flat`, a vector of `size`, one item per group."""
        rest, found = flat.detach(), []
        for group in self.groups:
            a_size = self.rank * group.inputs * len(group.shapes)
            b_sizes = [self.rank * shape.outputs for shape in group.shapes]
            a, *bs, rest = rest.split([a_size, *b_sizes, len(rest) - a_size - sum(b_sizes)])
            found.append(Matrices(a.view(-1, group.inputs), tuple(b.view(-1, self.rank) for b in bs)))
        return found

    def pairs(self, flat: Tensor) -> list[Pair]:
        """Views of `flat`, one pair per layer, in the order of `shapes`."""
        return [pair for matrices in self.matrices(flat) for pair in matrices.pairs]
