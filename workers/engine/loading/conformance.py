"""Whether a loaded base model computes what transformers computes, checked on its own weights, position by position.

The effect of rounding is measured: transformers' own pass is run again with random errors in the result of each module,
as large as its dtype and its sums allow (Monte Carlo arithmetic, Parker 1997). A difference that is several times as
large as their effect is no rounding.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from workers.engine.decoder.windows import window_of

# Two sequences in one pass, which shows an effect of one on the other; long enough for windows and scaled angles.
LONG, SHORT = 256, 24
# For a model without windows or scaled angles, or with so many weights that LONG would take minutes on a CPU.
FEW, MANY_WEIGHTS = 64, 1_500_000_000
# Tokens that are run again with random errors.
RERUN = 32
# Positions that are compared together.
BLOCK = 4
# Our result and that of transformers each differ from the exact one, by other roundings than the random ones.
MOST_ROUNDINGS = 3.0


@dataclass(frozen=True)
class Sequence:
    """A sequence of the check, and transformers' hidden states [T, D] of it."""

    tokens_T: Tensor
    hidden_TD: Tensor


class Reference:
    """The results of transformers' own modules, computed before any of them is replaced.

    Raises:
        ValueError: the model cannot run.
    """

    @torch.no_grad()
    def __init__(self, model: Any, decoder: Any, config: Any, is_lean: bool) -> None:
        """`is_lean`: the model will be run by Llama, not by TransformersStack."""
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
        """Raises ValueError where our hidden states of a sequence differ; the message says where."""
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
        """Raises ValueError where our head's logits of transformers' hidden states differ from its own."""
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
        """Of a few tokens. In bf16 a rounding may route several of them to other experts: the median is compared."""
        return float(off_T.median()) if self._changes_routes else _second(off_T)


def _second(off_T: Tensor) -> float:
    """The second largest: for one token a rounding may decide between two very different results."""
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
    """The largest error of one number of a module's result: a unit in the last place of its dtype, and of fp32 for each
    of its summands, which add up as a random walk."""
    wide = result.float()
    weights = [weight for weight in module._parameters.values() if weight is not None and weight.ndim > 1]
    summands = max((weight.shape[-1] for weight in weights), default=1)
    size = wide.square().mean(-1, keepdim=True).sqrt()
    return wide.abs() * torch.finfo(result.dtype).eps + size * (summands**0.5 * torch.finfo(torch.float32).eps)


def _unit(hidden_TD: Tensor) -> float:
    """As `_rounding`, of a product with hidden states, relative to its size."""
    sums = hidden_TD.shape[-1] ** 0.5 * torch.finfo(torch.float32).eps
    return torch.finfo(hidden_TD.dtype).eps + sums


def _off(found_TD: Tensor, correct_TD: Tensor) -> Tensor:
    """The norm of each token's difference relative to the norm of the correct result, [T]."""
    wide = correct_TD.float()
    off_T = torch.linalg.vector_norm(found_TD.float() - wide, dim=-1)
    # A head of zeros gives zeros: no difference relative to nothing is no error.
    return (off_T / torch.linalg.vector_norm(wide, dim=-1)).masked_fill(off_T == 0, 0.0)
