"""How per-token losses become one scalar: loss = sum_t scale_t * L_t."""

import numpy as np

from domain.forward_backward import Aggregation


def token_scales(weights_T: np.ndarray, offsets: np.ndarray, aggregation: Aggregation, horizon: int) -> np.ndarray:
    """fp64 [T], computed from the whole call, so that it does not matter how the call is cut.

    With m the weights, N the samples of the call (empty ones too) and H the horizon:
    fixed_horizon m / (N H) (Liu et al. 2025, arXiv:2503.20783); token_mean m / sum(m) (Yu et al. 2025,
    arXiv:2503.14476); sum m; sequence_mean m / (N sum of m in the sample) (Shao et al. 2024, arXiv:2402.03300).
    A token of weight 0 has scale 0. Weights that sum to 0 without being 0 give scales that are not finite.
    """
    weights_T = weights_T.astype(np.float64)
    divisors_T = _divisors(weights_T, offsets, aggregation, horizon)
    with np.errstate(divide="ignore"):
        return np.divide(weights_T, divisors_T, out=np.zeros_like(weights_T), where=weights_T != 0)


def _divisors(weights_T: np.ndarray, offsets: np.ndarray, aggregation: Aggregation, horizon: int) -> np.ndarray:
    samples = len(offsets) - 1
    match aggregation:
        case Aggregation.FIXED_HORIZON:
            return np.full_like(weights_T, samples * horizon)
        case Aggregation.SUM:
            return np.ones_like(weights_T)
        case Aggregation.TOKEN_MEAN:
            return np.full_like(weights_T, weights_T.sum())
        case Aggregation.SEQUENCE_MEAN:
            sample_T = np.repeat(np.arange(samples), np.diff(offsets))
            return samples * np.bincount(sample_T, weights_T, minlength=samples)[sample_T]
