"""Which layers of a Hugging Face decoder are adapted, and which of its weights are not."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

# Names of the number of experts in configurations of mixtures of experts.
EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts")
# Last parts of the names of routers that are linear layers.
ROUTERS = ("gate", "router", "classifier", "wg", "router_proj", "shared_expert_gate")
# Layers that PEFT treats as experts of a mixture, wherever they are (peft.utils.transformers_weight_conversion).
EXPERT_PROJECTIONS = ("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3")


@dataclass(frozen=True)
class AdaptedLayers:
    """`linears` are the names, in the whole model, of the layers that an adapter changes: every linear layer of every
    decoder layer, but in a mixture of experts only those that PEFT does not treat as experts.

    `experts` are the names of what is not adapted in a mixture: weights of all experts in one tensor, routers, shared
    experts and dense MLPs. `targets` are PEFT's target_modules: last parts of names, or whole names where a last part
    is also that of a module that is not adapted.
    """

    linears: tuple[str, ...]
    experts: tuple[str, ...]
    targets: tuple[str, ...]


def text_decoder(model: Any) -> Any:
    """The part of a Hugging Face model that computes hidden states from tokens.

    Raises:
        ValueError: it is not one list of layers.
    """
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    parts = (model.get_decoder(), getattr(model, "model", model.base_model))
    for part in parts:
        if _layers(part, count) is not None:
            return part
    raise ValueError(f"{type(parts[-1]).__name__} is not one list of {count} layers")


def _layers(decoder: Any, count: int | None) -> nn.ModuleList | None:
    lists = (child for child in decoder.children() if isinstance(child, nn.ModuleList))
    return next((child for child in lists if len(child) == count), None)


def adapted_layers(model: Any, decoder: Any, config: Any) -> AdaptedLayers:
    """Of a model with its `text_decoder` and that one's configuration.

    Raises:
        ValueError: its layers have weights that are neither linear layers nor those of experts: an adapter would leave
            out part of them.
    """
    layers = _layers(decoder, config.num_hidden_layers)
    assert layers is not None
    prefix = next(name for name, module in model.named_modules() if module is layers)
    experts = next((count for name in EXPERT_COUNTS if (count := getattr(config, name, None))), 0)
    linears, left, others = [], [], []
    for name, module, weight in _weights(layers):
        if _is_expert_s(name, module, weight, experts):
            left.append(f"{prefix}.{name}")
        elif type(module) is nn.Linear:
            linears.append(f"{prefix}.{name.removesuffix('.weight')}")
        else:
            others.append(f"{prefix}.{name}")
    if others:
        raise ValueError(f"an adapter would leave out {', '.join(within_a_layer(others))}, which are no linear layers")
    if not linears:
        raise ValueError("its layers have no linear layer, so that there is nothing to adapt")
    return AdaptedLayers(tuple(linears), tuple(left), tuple(_targets(model, linears)))


def _targets(model: Any, linears: list[str]) -> list[str]:
    last = {name.rpartition(".")[2] for name in linears}
    found = {name for name, _ in model.named_modules() if name.rpartition(".")[2] in last}
    return sorted(last) if found == set(linears) else linears


def _weights(layers: nn.ModuleList) -> Iterator[tuple[str, nn.Module, nn.Parameter]]:
    """Weights of more than one dimension: name, module and weight."""
    for name, module in layers.named_modules():
        for part, weight in module.named_parameters(name, recurse=False):
            if weight.ndim > 1:
                yield part, module, weight


def _is_expert_s(name: str, module: nn.Module, weight: nn.Parameter, experts: int) -> bool:
    if type(module) is nn.Linear:
        last = name.removesuffix(".weight").rpartition(".")[2]
        return bool(experts) and (last in EXPERT_PROJECTIONS or (last in ROUTERS and len(weight) in (experts, 1)))
    return bool(experts) and experts in weight.shape[:2]


def within_a_layer(names: Iterable[str]) -> tuple[str, ...]:
    """The names within a decoder layer, each once."""
    return tuple(sorted({re.sub(r"^.*?\.\d+\.", "", name).removesuffix(".weight") for name in names}))
