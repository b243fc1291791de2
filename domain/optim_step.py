"""The optim-step operation: AdamW or Muon over the gradients that the session has accumulated."""

import msgspec


class Muon(msgspec.Struct, frozen=True, kw_only=True):
    """Momentum, made orthogonal by Newton-Schulz iterations, per matrix.

    `match_adam` scales a matrix's step to the size AdamW's would have, so that its learning rates carry over;
    otherwise as in the original.
    """

    momentum: float = 0.95
    newton_schulz_steps: int = 5
    match_adam: bool = True


class OptimStepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """AdamW with bias correction and decoupled weight decay, all of it per call; or Muon, when it is given, with
    the same learning rate and weight decay.

    Gradients whose L2 norm is above `grad_clip_norm` are scaled down to it; 0 is off.
    """

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.1
    grad_clip_norm: float = 0.0
    muon: Muon | None = None


class OptimStepResult(msgspec.Struct, frozen=True, kw_only=True):
    """`step` counts finished optim-steps; metrics are grad_norm (before clipping) and update_norm (L2)."""

    step: int
    metrics: dict[str, float]
