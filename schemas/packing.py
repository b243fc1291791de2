"""Samples of the wire -> the packed arrays of a forward-backward request, in bulk."""

import numpy as np

from schemas.samples import TrainingSample


class Packing:
    """Where the entries of N samples lie, and which of them predict something.

    A sample with target_tokens predicts one target per input token. One without is a whole
    sequence s: its inputs are s[:-1], its targets s[1:], and its arrays lose entry 0.
    """

    def __init__(self, samples: list[TrainingSample]) -> None:
        self._samples = samples
        self._lengths_N = np.array([len(sample.model_input) for sample in samples], dtype=np.int64)
        whole_N = np.array([sample.target_tokens is None for sample in samples])
        ends_N = np.cumsum(self._lengths_N)
        self._is_input = np.ones(ends_N[-1], dtype=bool)
        self._is_input[ends_N[whole_N] - 1] = False
        self._is_entry = np.ones(ends_N[-1], dtype=bool)
        self._is_entry[(ends_N - self._lengths_N)[whole_N]] = False
        self.offsets = np.concatenate([[0], np.cumsum(self._lengths_N - whole_N)]).astype(np.int64)

    @property
    def tokens_T(self) -> np.ndarray:
        tokens = np.concatenate([sample.model_input.tokens_T for sample in self._samples])
        return tokens[self._is_input].astype(np.int32, copy=False)

    @property
    def targets_T(self) -> np.ndarray:
        targets = [_or(sample.target_tokens, sample.model_input.tokens_T) for sample in self._samples]
        return np.concatenate(targets)[self._is_entry].astype(np.int32, copy=False)

    @property
    def weights_T(self) -> np.ndarray:
        ones = np.ones(self._lengths_N.max(), dtype=np.float32)
        masks = [_or(sample.weights, ones[: len(sample.model_input)]) for sample in self._samples]
        return np.concatenate(masks)[self._is_entry]

    def policy_array_T(self, name: str, weights_T: np.ndarray) -> np.ndarray:
        """One of the arrays of a policy loss, 0 wherever nothing is trained, so that nothing there can matter."""
        arrays = [sample.policy[name] for sample in self._samples if sample.policy is not None]
        return np.where(weights_T > 0, np.concatenate(arrays)[self._is_entry], np.float32(0))


def _or(array: np.ndarray | None, default: np.ndarray) -> np.ndarray:
    return default if array is None else array
