"""The kernels without state, on tensors of a CPU in fp32 or bf16: computed in fp32 and rounded once.

Inputs are copied where they are not laid out as a kernel reads them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from workers.engine.kernels.binding import Kernel, has_contiguous_rows
from workers.engine.kernels.interface import record

_rms_norm, _rms_norm_backward = Kernel("rms_norm"), Kernel("rms_norm_backward")
_swiglu, _swiglu_backward = Kernel("swiglu"), Kernel("swiglu_backward")
_rotary, _dropout, _outer = Kernel("rotary"), Kernel("dropout"), Kernel("outer")
_target_logprobs, _draw = Kernel("target_logprobs"), Kernel("draw")

_CHOICE = record("Choice")


def rms_norm(x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension of x, [T, D] or [T, H, D]; the weight is fp32."""
    x = _by_token(x)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    _rms_norm(x.dtype, x=x, weight=weight_D, eps=eps, y=y, **_heads(x))
    return y


def rms_norm_backward(x: Tensor, grad: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """The gradient by x, from that by the result."""
    x, grad = _by_token(x), grad.contiguous()
    x_grad = torch.empty_like(grad)
    _rms_norm_backward(x.dtype, x=x, weight=weight_D, eps=eps, grad=grad, x_grad=x_grad, **_heads(x))
    return x_grad


def rotary(x_THD: Tensor, cos_TC: Tensor, sin_TC: Tensor, back: bool = False, out: Tensor | None = None) -> Tensor:
    """Each head's vector, D = 2 C, rotated by its token's angles, or back; into `out` where given."""
    x_THD, (length, heads, size) = _by_token(x_THD), x_THD.shape
    y_THD = torch.empty_like(x_THD, memory_format=torch.contiguous_format) if out is None else out
    _rotary(
        x_THD.dtype, x=x_THD, cos=_by_token(cos_TC), sin=_by_token(sin_TC), y=y_THD,
        length=length, heads=heads, pairs=size // 2, sign=-1.0 if back else 1.0,
    )  # fmt: skip
    return y_THD


def swiglu(gate_up_TF: Tensor) -> Tensor:
    """silu(gate) * up of both side by side: [T, 2 F] -> [T, F]."""
    gate_up_TF, (length, width) = gate_up_TF.contiguous(), gate_up_TF.shape
    y_TF = gate_up_TF.new_empty(length, width // 2)
    _swiglu(y_TF.dtype, gate_up=gate_up_TF, y=y_TF, length=length, size=width // 2)
    return y_TF


def swiglu_backward(gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
    """The gradient by gate and up, from that by the result."""
    gate_up_TF, grad_TF, (length, size) = gate_up_TF.contiguous(), grad_TF.contiguous(), grad_TF.shape
    by_both_TF = torch.empty_like(gate_up_TF)
    _swiglu_backward(grad_TF.dtype, gate_up=gate_up_TF, grad=grad_TF, gate_up_grad=by_both_TF, length=length, size=size)
    return by_both_TF


def dropout(
    x_NI: Tensor, samples_N: Tensor, positions_N: Tensor, *, key: int, group: int, least: int, factor: float
) -> Tensor:
    """x * factor where the number that Philox4x32-10 of `key` has at (column, position, sample, group) is at least
    `least`, else 0."""
    x_NI, (rows, columns) = x_NI.contiguous(), x_NI.shape
    y_NI = torch.empty_like(x_NI)
    _dropout(
        x_NI.dtype, x=x_NI, y=y_NI, samples=samples_N, positions=positions_N, rows=rows, columns=columns,
        key=key, group=group, least=least, factor=factor,
    )  # fmt: skip
    return y_NI


def outer(u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
    """factor * u^T v, [S, C] in fp32."""
    u_NS, v_NC = _by_token(u_NS), _by_token(v_NC)
    (rows, width), columns = u_NS.shape, v_NC.shape[1]
    sums_SC = torch.empty(width, columns)
    _outer(u_NS.dtype, u=u_NS, v=v_NC, sums=sums_SC, rows=rows, width=width, columns=columns, factor=factor)
    return sums_SC


def target_logprobs(logits_CV: Tensor, targets_C: Tensor, computes_grad: bool = False) -> tuple[Tensor, Tensor]:
    """Logprobs of the targets and entropies, fp32 [C]. Where asked, the logits become the gradient of the logprobs."""
    logprobs_C = logits_CV.new_empty(len(targets_C), dtype=torch.float32)
    entropies_C, (rows, vocabulary) = torch.empty_like(logprobs_C), logits_CV.shape
    _target_logprobs(
        logits_CV.dtype, logits=logits_CV, targets=targets_C.contiguous(), logprobs=logprobs_C, entropies=entropies_C,
        rows=rows, vocabulary=vocabulary, computes_grad=computes_grad,
    )  # fmt: skip
    return logprobs_C, entropies_C


def draw(logits_BV: Tensor, choices: Sequence[tuple[float, float, float, float]]) -> tuple[Tensor, Tensor]:
    """Tokens int64 [B] and their logprobs fp32 [B], by each row's temperature, top k (the size of the vocabulary for no
    limit), top p, and uniform number in [0, 1)."""
    logits_BV, (rows, vocabulary) = logits_BV.contiguous(), logits_BV.shape
    tokens_B, logprobs_B = torch.empty(rows, dtype=torch.int64), torch.empty(rows)
    _draw(
        logits_BV.dtype, logits=logits_BV, choices=np.array(choices, _CHOICE), tokens=tokens_B, logprobs=logprobs_B,
        rows=rows, vocabulary=vocabulary,
    )  # fmt: skip
    return tokens_B, logprobs_B


def _by_token(x: Tensor) -> Tensor:
    """x itself where the numbers of each token lie together, else a copy."""
    return x if x.is_contiguous() or has_contiguous_rows(x) else x.contiguous()


def _heads(x: Tensor) -> dict[str, int]:
    length, *heads, size = x.shape
    return {"length": length, "heads": heads[0] if heads else 1, "size": size}
