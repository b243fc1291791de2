"""Causal attention of one sequence's last tokens over all of it (Vaswani et al. 2017, arXiv:1706.03762)."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from workers.engine.backends.attention_layer import AttentionLayer
from workers.engine.backends.kv_cache import LENGTH_STEP
from workers.engine.backends.softcap import capped, softcap_derivative

# Attention weights held at once in backward, in elements: 64 MiB.
BLOCK_ELEMENTS = 1 << 24


def causal(layer: AttentionLayer, q_LHD: Tensor, k_MKD: Tensor, v_MKD: Tensor) -> Tensor:
    """[L, H, D] for the last L of M tokens."""
    if q_LHD.requires_grad and (q_LHD.device.type == "cpu" or not layer.is_plain):
        out_LHD: Tensor = _CausalAttention.apply(layer, q_LHD, k_MKD, v_MKD)
        return out_LHD
    return _forward(layer, q_LHD, k_MKD, v_MKD)


def _forward(layer: AttentionLayer, q_LHD: Tensor, k_MKD: Tensor, v_MKD: Tensor) -> Tensor:
    return (_plain_forward if layer.is_plain else _explicit_forward)(layer, q_LHD, k_MKD, v_MKD)


def _plain_forward(layer: AttentionLayer, q_LHD: Tensor, k_MKD: Tensor, v_MKD: Tensor) -> Tensor:
    length, keys = len(q_LHD), len(k_MKD)
    is_plain = length == keys and not layer.is_cut(keys)
    if q_LHD.device.type == "cpu":
        # To steps as in decode: otherwise the order in which torch's kernel sums a row depends on its neighbours and
        # its thread (docs/decisions/0018-the-same-bits.md). What is added comes last, so that no token sees it.
        q_LHD, k_MKD, v_MKD = (_filled(part) for part in (q_LHD, k_MKD, v_MKD))
    start = keys - length
    mask_LM = None if is_plain else layer.visible(start, start + len(q_LHD), len(k_MKD), q_LHD.device)
    q, k, v = (part.transpose(0, 1)[None] for part in (q_LHD, k_MKD, v_MKD))
    out = scaled_dot_product_attention(
        q, k, v, attn_mask=mask_LM, is_causal=is_plain, scale=layer.scale, enable_gqa=True
    )
    return out[0].transpose(0, 1)[:length]


def _explicit_forward(layer: AttentionLayer, q_LHD: Tensor, k_MKD: Tensor, v_MKD: Tensor) -> Tensor:
    """A block of queries at a time, filled up for the same reason."""
    length, start = len(q_LHD), len(k_MKD) - len(q_LHD)
    q_LHD, k_MKD, v_MKD = (_filled(part) for part in (q_LHD, k_MKD, v_MKD))
    kv_heads = k_MKD.shape[1]
    k_KMD, v_KMD = _by_keys(k_MKD, kv_heads), _by_keys(v_MKD, kv_heads)
    out_LHD = q_LHD.new_empty(*q_LHD.shape[:2], v_MKD.shape[2])
    for first in range(0, len(q_LHD), LENGTH_STEP):
        part = slice(first, first + LENGTH_STEP)
        seen_LM = layer.visible(start + part.start, start + part.stop, len(k_MKD), q_LHD.device)
        weights_KNM, _ = _weights(layer, _by_keys(q_LHD[part], kv_heads), k_KMD, seen_LM)
        _heads(out_LHD[part], kv_heads).copy_((weights_KNM @ v_KMD).unflatten(1, (-1, LENGTH_STEP)))
    return out_LHD[:length]


def _filled(x_LHD: Tensor) -> Tensor:
    return pad(x_LHD, (0, 0, 0, 0, 0, -len(x_LHD) % LENGTH_STEP))


class _CausalAttention(torch.autograd.Function):
    """torch's own backward pass on CPUs takes twice as long in bf16. This one computes the weights again, in fp32 and
    a block of queries at a time; the query heads that share a head of keys are queries of one sequence to it."""

    @staticmethod
    def forward(ctx: Any, layer: AttentionLayer, q_LHD: Tensor, k_MKD: Tensor, v_MKD: Tensor) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(q_LHD, k_MKD, v_MKD)
        return _forward(layer, q_LHD, k_MKD, v_MKD)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q_LHD, k_MKD, v_MKD = ctx.saved_tensors
        layer: AttentionLayer = ctx.layer
        length, (keys, kv_heads, _) = len(q_LHD), k_MKD.shape
        k_KMD, v_KMD = _by_keys(k_MKD, kv_heads), _by_keys(v_MKD, kv_heads)
        grad_k_KMD, grad_v_KMD = torch.zeros_like(k_KMD), torch.zeros_like(v_KMD)
        grad_q_LHD = torch.empty_like(q_LHD)
        size = max(1, BLOCK_ELEMENTS // (q_LHD.shape[1] * keys))
        for start in range(0, length, size):
            part = slice(start, min(start + size, length))
            q_KND, grad_KND = _by_keys(q_LHD[part], kv_heads), _by_keys(grads[0][part], kv_heads)
            seen_LM = layer.visible(keys - length + part.start, keys - length + part.stop, keys, q_LHD.device)
            weights_KNM, raw_KNM = _weights(layer, q_KND, k_KMD, seen_LM)
            grad_v_KMD.baddbmm_(weights_KNM.mT, grad_KND)
            scores_KNM = torch.ops.aten._softmax_backward_data(grad_KND @ v_KMD.mT, weights_KNM, -1, torch.float32)
            if layer.softcap is not None:
                scores_KNM *= softcap_derivative(raw_KNM, layer.softcap)
            grad_k_KMD.baddbmm_(scores_KNM.mT, q_KND, alpha=layer.scale)
            by_heads_KGLD = (scores_KNM @ k_KMD).mul_(layer.scale).unflatten(1, (-1, len(seen_LM)))
            _heads(grad_q_LHD[part], kv_heads).copy_(by_heads_KGLD)
        grad_k_MKD, grad_v_MKD = (part.transpose(0, 1).to(k_MKD.dtype) for part in (grad_k_KMD, grad_v_KMD))
        return None, grad_q_LHD, grad_k_MKD, grad_v_MKD


def _weights(layer: AttentionLayer, q_KND: Tensor, k_KMD: Tensor, seen_LM: Tensor) -> tuple[Tensor, Tensor]:
    """[K, N, M], and the scores they come from, of all keys, those that are not seen among them."""
    groups = q_KND.shape[1] // len(seen_LM)
    if layer.is_plain:
        bias_LM = torch.zeros(seen_LM.shape, device=seen_LM.device).masked_fill_(~seen_LM, float("-inf"))
        scores_KNM = torch.baddbmm(bias_LM.repeat(groups, 1), q_KND, k_KMD.mT, alpha=layer.scale)
        return scores_KNM.softmax(-1), scores_KNM
    scores_KNM = capped((q_KND @ k_KMD.mT).mul_(layer.scale), layer.softcap)
    sinks = None if layer.sinks_H is None else layer.sinks_H.view(len(k_KMD), groups, 1)
    sinks_KN1 = None if sinks is None else sinks.repeat_interleave(len(seen_LM), 1)
    seen_NM = seen_LM.repeat(groups, 1)
    return softmax(scores_KNM.masked_fill(~seen_NM, float("-inf")), sinks_KN1), scores_KNM


def softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Over the last dimension. `sinks`, of the same shape but for a last dimension of 1, take part and are left out of
    the result, whose rows then sum to less than 1."""
    if sinks is None:
        return scores.softmax(-1)
    return torch.cat([scores, sinks.to(scores.dtype)], -1).softmax(-1)[..., :-1]


def _heads(x_LHD: Tensor, kv_heads: int) -> Tensor:
    """A view [K, G, L, D]: for each head of keys, the G = H / K heads that read it."""
    return x_LHD.unflatten(1, (kv_heads, -1)).permute(1, 2, 0, 3)


def _by_keys(x_LHD: Tensor, kv_heads: int) -> Tensor:
    """An fp32 copy [K, N, D] of `_heads`, with N = G * L, converted and laid out in one go."""
    heads_KGLD = _heads(x_LHD, kv_heads)
    copy_KGLD = torch.empty(heads_KGLD.shape, device=x_LHD.device).copy_(heads_KGLD)
    return copy_KGLD.flatten(1, 2)
