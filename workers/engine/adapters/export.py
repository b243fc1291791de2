"""An adapter as the files that PEFT and other libraries load."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from safetensors.torch import save
from torch import Tensor

from domain.checkpoint import NewFile
from domain.session import LoraConfig
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.layout import Pair

# Where PEFT has the model that it adapts.
PEFT_PREFIX = "base_model.model."


@dataclass(frozen=True)
class AdapterExport:
    """fp32 copies on the CPU, A [rank, inputs] and B [outputs, rank] by the adapted layer's name, and the step.
    `targets` are PEFT's target_modules (see AdaptedLayers)."""

    pairs: dict[str, Pair]
    scale: float
    step: int
    targets: tuple[str, ...] = ()

    @classmethod
    def of(cls, adapter: Adapter, targets: tuple[str, ...]) -> "AdapterExport":
        weights = adapter.weights.detach().to("cpu", copy=True)
        names = [shape.name for shape in adapter.layout.shapes]
        return cls(dict(zip(names, adapter.layout.pairs(weights), strict=True)), adapter.scale, adapter.step, targets)

    def delta(self, layer: str) -> Tensor:
        """What the adapter adds to the layer's weight, fp32 [outputs, inputs]: scale * B A."""
        pair = self.pairs[layer]
        return self.scale * (pair.B @ pair.A)

    def peft_files(self, lora: LoraConfig, base_model: str) -> Iterator[NewFile]:
        """adapter_config.json and adapter_model.safetensors."""
        yield NewFile.of("adapter_config.json", json.dumps(self._peft_config(lora, base_model), indent=2).encode())
        yield NewFile.of("adapter_model.safetensors", save(self._peft_tensors(), metadata={"format": "pt"}))

    def _peft_config(self, lora: LoraConfig, base_model: str) -> dict[str, object]:
        return {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base_model,
            "r": lora.rank,
            "lora_alpha": lora.alpha,
            "lora_dropout": lora.dropout,
            "target_modules": list(self.targets),
            "bias": "none",
            "inference_mode": True,
        }

    def _peft_tensors(self) -> dict[str, Tensor]:
        return {
            f"{PEFT_PREFIX}{layer}.lora_{side}.weight": matrix.contiguous()
            for layer, pair in self.pairs.items()
            for side, matrix in (("A", pair.A), ("B", pair.B))
        }
