"""A forward-backward call as the trainer reads it: packed tokens, and which of them matter."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contract.forward_backward import ForwardBackwardRequest


@dataclass(frozen=True)
class MicroBatch:
    """Some samples of a call, one after the other: `lengths` of them, `tokens_T` in all, `positions_T` in each.

    `rows_N` are the rows whose logprob is wanted, `index_N` which tokens of the call these are.
    """

    samples: list[int]
    lengths: list[int]
    tokens_T: Tensor
    positions_T: Tensor
    rows_N: Tensor
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
        positions_T = np.concatenate([np.arange(length) for length in lengths])
        index_T = np.repeat(self._starts[samples], lengths) + positions_T
        rows_N = np.flatnonzero(self.wanted_T[index_T])
        arrays = (self._tokens_T[index_T].astype(np.int64), positions_T, rows_N, index_T[rows_N])
        return MicroBatch(samples, lengths.tolist(), *(torch.from_numpy(array).to(device) for array in arrays))


def _reach(wanted_T: np.ndarray) -> int:
    found = np.flatnonzero(wanted_T)
    return int(found[-1]) + 1 if len(found) else 0
