"""Whether a base model here is the one of transformers, found at load on its own weights, position by position.

What rounding alone may do is measured and not guessed: transformers' own pass is run again with the result of each of
its modules off by what its dtype and its sums may be off by (Monte Carlo arithmetic, Parker 1997). A difference that is
several times as large is no rounding.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from workers.engine.decoder.windows import window_of

# Two sequences side by side: of what one does to the other, and of windows and scaled angles that begin late.
LONG, SHORT = 256, 24
# Of a model in which nothing begins late, or for which that would take minutes on a CPU.
FEW, MANY_WEIGHTS = 64, 1_500_000_000
# So many are run again to measure what rounding does.
RERUN = 32
# Positions that are judged together.
BLOCK = 4
# Ours and theirs are each off by as much, by other roundings than those that are drawn.
MOST_ROUNDINGS = 3.0


@dataclass(frozen=True)
class Sequence:
    """A sequence of the check, and the hidden states [T, D] that transformers makes of it."""

    tokens_T: Tensor
    hidden_TD: Tensor


class Reference:
    """What transformers computes, by its own modules, before we change any of them.

    Raises:
        ValueError: the model cannot run.
    """

    @torch.no_grad()
    def __init__(self, model: Any, decoder: Any, config: Any, is_lean: bool) -> None:
        """`is_lean`: it is our own decoder that will serve it."""
        model.set_attn_implementation("eager")
        generator = torch.Generator(device=model.device).manual_seed(0)
        has_experts = any(weight.ndim == 3 for weight in decoder.parameters())
        self._changes_routes = has_experts and model.dtype != torch.float32
        long_T, short_T = (
            torch.randint(config.vocab_size, (length,), generator=generator, device=model.device)
            for length in _lengths(model, config, is_lean)
        )
        long_TD = _hidden(decoder, long_T)
        # Through the whole model: its head, and nothing between the decoder and it.
        short_TD, self.logits_TV = _hidden_and_logits(model, decoder, short_T)
        self.sequences = [Sequence(long_T, long_TD), Sequence(short_T, short_TD)]
        with _rounded_otherwise(decoder, generator):
            off_TD = _hidden(decoder, long_T[:RERUN])
        self._noise_T = _off(off_TD, long_TD[:RERUN])

    def refuse_unlike(self, ours: list[Tensor], how: str) -> None:
        """Of each sequence's hidden states. Raises ValueError which says where they differ."""
        for sequence, hidden_TD in zip(self.sequences, ours, strict=True):
            off_T = _off(hidden_TD, sequence.hidden_TD)
            for start in range(0, len(off_T), BLOCK):
                part = slice(start, start + BLOCK)
                first = max(0, min(start, len(self._noise_T) - BLOCK) - BLOCK)
                allowed = MOST_ROUNDINGS * _second(self._noise_T[first : first + 3 * BLOCK])
                if not self._typical(off_T[part]) <= allowed:
                    raise ValueError(
                        f"{how}, from token {start} of {len(off_T)} on, its hidden states are not those of "
                        f"transformers: off by {self._typical(off_T[part]):.1e} of their size, where rounding in "
                        f"{hidden_TD.dtype} explains {allowed:.1e}"
                    )

    def refuse_other_logits(self, ours: Callable[[Tensor], Tensor]) -> None:
        """Raises ValueError when the head does not make transformers' logits of its hidden states."""
        found_TV = ours(self.sequences[-1].hidden_TD)
        if found_TV.shape != self.logits_TV.shape:
            raise ValueError(f"its logits are {list(found_TV.shape)}, and transformers' {list(self.logits_TV.shape)}")
        off = float(_off(found_TV, self.logits_TV).max())
        allowed = MOST_ROUNDINGS * _unit(self.sequences[-1].hidden_TD)
        if not off <= allowed:
            raise ValueError(
                f"its logits are not those of transformers: off by {off:.1e} of their size, where rounding explains "
                f"{allowed:.1e}"
            )

    def _typical(self, off_T: Tensor) -> float:
        """Of a few tokens. Rounding to bf16 may send several of them to other experts: the median tells."""
        return float(off_T.median()) if self._changes_routes else _second(off_T)


def _second(off_T: Tensor) -> float:
    """The second largest: one token may be at a tipping point, where a rounding decides."""
    return float(off_T.sort().values[max(0, len(off_T) - 2)])


def _lengths(model: Any, config: Any, is_lean: bool) -> list[int]:
    is_costly = model.device.type == "cpu" and model.num_parameters() > MANY_WEIGHTS
    long = FEW if is_costly or (is_lean and not _begins_late(config)) else LONG
    context = getattr(config, "max_position_embeddings", None) or long
    return [min(long, context), min(SHORT, context)]


def _begins_late(config: Any) -> bool:
    """Whether positions differ in our own decoder by more than their plain angles."""
    rope = getattr(config, "rope_parameters", None) or {}
    has_window = any(window_of(config, layer) for layer in range(config.num_hidden_layers))
    return has_window or rope.get("rope_type", "default") != "default"


def _hidden(decoder: Any, tokens_T: Tensor) -> Tensor:
    hidden_1TD: Tensor = decoder(input_ids=tokens_T[None], use_cache=False).last_hidden_state
    return hidden_1TD[0]


def _hidden_and_logits(model: Any, decoder: Any, tokens_T: Tensor) -> tuple[Tensor, Tensor]:
    kept: list[Tensor] = []
    with decoder.register_forward_hook(lambda *call: kept.append(call[-1].last_hidden_state[0])):
        logits_TV = model(input_ids=tokens_T[None], use_cache=False).logits[0]
    return kept[0], logits_TV


@contextmanager
def _rounded_otherwise(decoder: nn.Module, generator: torch.Generator) -> Iterator[None]:
    def hook(module: nn.Module, _: Any, result: Any) -> Any:
        if not isinstance(result, Tensor) or not result.is_floating_point():
            return None
        drawn = torch.rand(result.shape, generator=generator, device=result.device).mul_(2).sub_(1)
        return (result.float() + drawn * _rounding(module, result)).to(result.dtype)

    modules = [module for module in decoder.modules() if module._parameters or not module._modules]
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _rounding(module: nn.Module, result: Tensor) -> Tensor:
    """How far one number of a module's result may be off: by a unit of its dtype in the last place, and by that of fp32
    for each of the summands in it, which add up as a random walk."""
    wide = result.float()
    weights = [weight for weight in module._parameters.values() if weight is not None and weight.ndim > 1]
    summands = max((weight.shape[-1] for weight in weights), default=1)
    size = wide.square().mean(-1, keepdim=True).sqrt()
    return wide.abs() * torch.finfo(result.dtype).eps + size * (summands**0.5 * torch.finfo(torch.float32).eps)


def _unit(hidden_TD: Tensor) -> float:
    """As `_rounding`, of a product with hidden states, beside its size."""
    sums = hidden_TD.shape[-1] ** 0.5 * torch.finfo(torch.float32).eps
    return torch.finfo(hidden_TD.dtype).eps + sums


def _off(found_TD: Tensor, right_TD: Tensor) -> Tensor:
    """Of each token, the size of the difference beside that of what is right, [T]."""
    wide = right_TD.float()
    off_T = torch.linalg.vector_norm(found_TD.float() - wide, dim=-1)
    # Of zeros, as a head of zeros makes them, nothing is off where nothing differs.
    return (off_T / torch.linalg.vector_norm(wide, dim=-1)).masked_fill(off_T == 0, 0.0)
