"""The engine's settings."""

import msgspec
import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`device` is "auto", "cpu", "cuda" or "cuda:N"; `dtype` that of the frozen base model.

    `horizon` is the H of the fixed-horizon aggregation for requests that carry none. `micro_batch_tokens` bounds the
    tokens of one forward pass, `max_batch_sequences` the sequences that decode together. `merge_training`: passes that
    train are shared by sessions. `torch_threads` 0 is torch's own choice, within the CPU quota of a container.
    `kernels` is the backend on a CPU: "native", "torch", or "auto", which measures (backends/trial.py). A base model
    may take `model_load_timeout` seconds to load.
    """

    device: str = "auto"
    dtype: str = "float32"
    kernels: str = "auto"
    horizon: int = 1024
    micro_batch_tokens: int = 2048
    max_batch_sequences: int = 64
    merge_training: bool = True
    torch_threads: int = 0
    model_load_timeout: float = 3600.0

    @property
    def torch_device(self) -> torch.device:
        """Raises ValueError for a device that does not exist here."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError as error:
            raise ValueError(f"device {self.device!r} is not known; use auto, cpu, cuda or cuda:N") from error
        if device.type not in ("cpu", "cuda"):
            raise ValueError(f"device {self.device!r} is not supported; use auto, cpu, cuda or cuda:N")
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            raise ValueError(
                f"device {self.device!r} does not exist here: {torch.cuda.device_count()} CUDA devices seen"
            )
        return device

    @property
    def torch_dtype(self) -> torch.dtype:
        """Raises ValueError for an unknown dtype."""
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r} is not known; use one of {', '.join(DTYPES)}")
        return DTYPES[self.dtype]
