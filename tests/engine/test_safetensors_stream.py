"""A file written tensor by tensor is the one that stock safetensors reads."""

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load

from workers.engine.adapters.safetensors_stream import Entry, safetensors_file


def test_tensors_of_every_width_and_shape_read_back_the_same() -> None:
    tensors = {
        "flags": torch.tensor([True, False, True]),
        "half": torch.randn(3, 5).bfloat16(),
        "scalar": torch.tensor(7, dtype=torch.int64),
        "empty": torch.zeros(0, 4),
        "turned": torch.randn(4, 6).T,
        'name with "quotes" and ü': torch.randn(2, 2, 2),
    }
    entries = [Entry(name, tuple(t.shape), t.dtype, lambda t=t: t) for name, t in tensors.items()]  # type: ignore[misc]
    file = safetensors_file("model.safetensors", entries)
    data = b"".join(bytes(chunk) for chunk in file.chunks)
    assert len(data) == file.size
    read = load(data)
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], tensor) and read[name].dtype is tensor.dtype for name, tensor in tensors.items())


def test_it_says_that_it_is_of_torch_as_transformers_asks(tmp_path: Path) -> None:
    file = safetensors_file("x", [Entry("w", (2,), torch.float32, lambda: torch.ones(2))])
    (tmp_path / "x").write_bytes(b"".join(bytes(chunk) for chunk in file.chunks))
    with safe_open(tmp_path / "x", framework="pt") as opened:
        assert opened.metadata() == {"format": "pt"}
