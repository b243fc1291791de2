"""The base model with an adapter merged into it, as a Hugging Face directory."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from domain.checkpoint import NewFile
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.safetensors_stream import DTYPES, Entry, safetensors_file
from workers.engine.failures import invalid_input

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = WEIGHTS + ".index.json"
# Copied as they are: generation config, tokenizer, chat template.
COPIED = ("*.json", "tokenizer*", "*.model", "*.txt", "*.jinja")
# Written anew, or of files that are not copied.
NOT_COPIED = (CONFIG, "adapter_config.json", "*.index.json")
# Parts of a tensor's name that say nothing about which one it is.
WRAPPERS = ("model", "language_model")
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class MergedExport:
    """W + scale * B A for each adapted layer, summed in fp32 and rounded once to `dtype`, the one that the base is
    served in; all else as the base's own files have it.

    The files are read again from `directory`, tensor by tensor: a merged model is never whole in memory, and a tied
    head stays what it is there, tied.

    Raises:
        OperationFailedError: the files name or hold the adapted layers in another way than the loaded model.
    """

    def __init__(self, directory: Path, adapter: AdapterExport, dtype: torch.dtype) -> None:
        self._directory, self._adapter, self._dtype = directory, adapter, dtype
        config = json.loads((directory / CONFIG).read_bytes())
        if "quantization_config" in config:
            raise invalid_input("A quantized base model cannot be merged with an adapter.")
        self._config = _with_dtype(config, dtype)
        self._entries = {shard: self._entries_of(directory / shard) for shard in _shards(directory)}
        self._layers = self._adapted_tensors()

    def files(self) -> Iterator[NewFile]:
        yield _json_file(CONFIG, self._config)
        for shard, entries in self._entries.items():
            yield safetensors_file(shard, entries)
        if list(self._entries) != [WEIGHTS]:
            yield _json_file(INDEX, self._index())
        for path in sorted({path for pattern in COPIED for path in self._directory.glob(pattern)}):
            if not any(path.match(pattern) for pattern in NOT_COPIED):
                yield NewFile.of(path.name, path.read_bytes())

    def _entries_of(self, shard: Path) -> list[Entry]:
        entries = []
        with safe_open(shard, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                part = file.get_slice(name)
                stored = DTYPES[part.get_dtype()]
                dtype = self._dtype if stored in FLOATS else stored
                entries.append(Entry(name, tuple(part.get_shape()), dtype, partial(self._merged, shard, name)))
        return entries

    def _merged(self, shard: Path, name: str) -> Tensor:
        """The tensor as it is in the merged model."""
        with safe_open(shard, framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
        if name in self._layers:
            return (tensor.float() + self._adapter.delta(self._layers[name])).to(self._dtype)
        return tensor.to(self._dtype) if tensor.dtype in FLOATS else tensor

    def _adapted_tensors(self) -> dict[str, str]:
        """From the name of a tensor in the files to that of the adapted layer whose weight it is."""
        shapes = {entry.name: entry.shape for entries in self._entries.values() for entry in entries}
        names = {_bare(name): name for name in shapes}
        found = {}
        for layer, pair in self._adapter.pairs.items():
            name = names.get(_bare(f"{layer}.weight"))
            if name is None or shapes[name] != (pair.B.shape[0], pair.A.shape[1]):
                raise invalid_input(f"The base model's files hold no tensor for {layer}, so they cannot be merged.")
            found[name] = layer
        return found

    def _index(self) -> dict[str, Any]:
        places = {entry.name: shard for shard, entries in self._entries.items() for entry in entries}
        size = sum(entry.size for entries in self._entries.values() for entry in entries)
        return {"metadata": {"total_size": size}, "weight_map": places}


def _bare(name: str) -> str:
    """Without what files leave out or name in another order: those saved from the bare decoder, or from an older
    multimodal model."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def _shards(directory: Path) -> list[str]:
    """The weight files, as transformers chooses them."""
    if (directory / WEIGHTS).exists():
        return [WEIGHTS]
    if not (directory / INDEX).exists():
        raise invalid_input(f"The base model has neither {WEIGHTS} nor {INDEX}, so it cannot be merged.")
    return sorted(set(json.loads((directory / INDEX).read_bytes())["weight_map"].values()))


def _with_dtype(config: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """The config that says what the weights are; under its older name too, which older readers look for."""
    name = str(dtype).removeprefix("torch.")
    return {**config, "dtype": name} | ({"torch_dtype": name} if "torch_dtype" in config else {})


def _json_file(name: str, value: dict[str, Any]) -> NewFile:
    return NewFile.of(name, json.dumps(value, indent=2).encode())
