"""A forward-backward call as the trainer reads it: packed tokens, and which of them matter."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contract.forward_backward import ForwardBackwardRequest


@dataclass(frozen=True)
class MicroBatch:
    """Some samples of a call, right-padded.

    `rows_N` and `columns_N` say where in tokens_BT the wanted tokens are, `index_N` which tokens of the call they
    are; `lengths` are the rows' real lengths.
    """

    samples: list[int]
    lengths: list[int]
    tokens_BT: Tensor
    rows_N: Tensor
    columns_N: Tensor
    index_N: Tensor


class PackedCall:
    """`wanted_T` marks the tokens whose logprob is needed: the trained ones, or all if they are returned.

    A sample is run up to its last wanted token only: nothing later can change what came before.
    """

    def __init__(self, request: ForwardBackwardRequest) -> None:
        self._tokens_T = request.tokens_T
        self._starts = request.offsets[:-1]
        everything = np.ones(len(request.tokens_T), bool)
        self.wanted_T = everything if request.return_logprobs else request.weights_T != 0
        self.lengths = np.array([_reach(part) for part in np.split(self.wanted_T, request.offsets[1:-1])], np.int64)

    def micro_batch(self, samples: list[int], device: torch.device) -> MicroBatch:
        lengths = self.lengths[samples]
        rows_N = np.repeat(np.arange(len(samples)), lengths)
        columns_N = np.concatenate([np.arange(length) for length in lengths])
        index_N = self._starts[samples][rows_N] + columns_N
        tokens_BT = np.zeros((len(samples), lengths.max()), np.int64)
        tokens_BT[rows_N, columns_N] = self._tokens_T[index_N]
        wanted_N = self.wanted_T[index_N]
        moved = [
            torch.from_numpy(part).to(device)
            for part in (tokens_BT, *(a[wanted_N] for a in (rows_N, columns_N, index_N)))
        ]
        return MicroBatch(samples, lengths.tolist(), *moved)


def _reach(wanted_T: np.ndarray) -> int:
    found = np.flatnonzero(wanted_T)
    return int(found[-1]) + 1 if len(found) else 0
