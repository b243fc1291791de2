"""The per-token arrays that a loss reads."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from domain.forward_backward import ForwardBackwardRequest


@dataclass(frozen=True)
class TokenArrays:
    """fp32 [T] each, over any choice of a call's tokens; None where the loss reads no such array.

    `samples_T`, int64, says to which sample of the call a token belongs.
    """

    samples_T: Tensor
    weights_T: Tensor
    advantages_T: Tensor | None
    generator_logprobs_T: Tensor | None
    reference_logprobs_T: Tensor | None

    @classmethod
    def of(cls, request: ForwardBackwardRequest, device: torch.device) -> "TokenArrays":
        def moved(array: object) -> Tensor | None:
            return None if array is None else torch.tensor(array, dtype=torch.float32, device=device)

        samples_T = np.repeat(np.arange(len(request.offsets) - 1), np.diff(request.offsets))
        return cls(
            torch.from_numpy(samples_T).to(device),
            torch.tensor(request.weights_T, dtype=torch.float32, device=device),
            moved(request.advantages_T),
            moved(request.generator_logprobs_T),
            moved(request.reference_logprobs_T),
        )

    def select(self, index_N: Tensor) -> "TokenArrays":
        """Only the tokens of `index_N`; what is left out cannot influence anything."""

        def chosen(array_T: Tensor | None) -> Tensor | None:
            return None if array_T is None else array_T[index_N]

        return TokenArrays(
            self.samples_T[index_N],
            self.weights_T[index_N],
            chosen(self.advantages_T),
            chosen(self.generator_logprobs_T),
            chosen(self.reference_logprobs_T),
        )
