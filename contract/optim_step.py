"""The optim-step operation: AdamW over the gradients that the session has accumulated."""

import msgspec


class OptimStepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """AdamW with bias correction and decoupled weight decay, all of it per call."""

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.1


class OptimStepResult(msgspec.Struct, frozen=True, kw_only=True):
    """`step` counts finished optim-steps; metrics are grad_norm and update_norm (L2)."""

    step: int
    metrics: dict[str, float]
