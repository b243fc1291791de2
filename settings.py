"""Every setting, read once from the environment: honoured, or refused with the name of the offender."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from contract.limits import Limits

DAY = 86_400.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, sizes in bytes. Each field is the environment variable of the same
    name in capitals behind CELERITY_, save `data_dir` (DATA_DIR)."""

    data_dir: Path = Path(".data")
    redis_url: str = "redis://127.0.0.1:6379/0"
    objects_url: str = ""
    models_dir: Path | None = None
    api_keys: tuple[str, ...] = ()
    log_level: str = "INFO"

    # Engine
    device: str = "auto"
    dtype: str = "float32"
    torch_threads: int = 0
    horizon: int = 1024
    micro_batch_tokens: int = 2048
    max_batch_sequences: int = 64

    # Workers
    worker_threads: int = 128
    heartbeat_interval: float = 1.0
    heartbeat_timeout: float = 8.0
    redispatch_after: float = 10.0
    most_attempts: int = 5
    snapshot_steps: int = 10
    snapshot_seconds: float = 60.0

    # Requests
    max_body_bytes: int = Limits().max_body_bytes
    max_samples_per_call: int = Limits().max_samples_per_call
    max_num_samples: int = Limits().max_num_samples
    max_rank: int = Limits().max_rank
    max_waiting_operations: int = Limits().max_waiting_operations
    max_running_samples: int = 32
    default_wait: float = 1.0
    max_wait: float = 30.0
    inline_bytes: int = 1024 * 1024

    # Retention
    session_retention: float = 7 * DAY
    result_retention: float = DAY
    results_kept: int = 1000
    idle_timeout: float = 0.0

    # Checkpoints; 0 is off
    checkpoints_kept: int = 0
    checkpoint_retention: float = 0.0
    disk_floor_bytes: int = 1024**3
    link_seconds: int = 3600
    public_url: str = ""

    @property
    def limits(self) -> Limits:
        return Limits(**{name: getattr(self, name) for name in Limits.__struct_fields__})


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment.

    Raises:
        ValueError: a CELERITY_ name that is not a setting, or a value that is not of its type.
    """
    fields = {f"CELERITY_{name.upper()}": name for name in Settings.__struct_fields__ if name != "data_dir"}
    fields["DATA_DIR"] = "data_dir"
    _refuse_unknown(environment, fields)
    given = {name: environment[variable] for variable, name in fields.items() if environment.get(variable)}
    try:
        return msgspec.convert(_typed(given), Settings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise ValueError(f"a setting has a wrong value: {error}") from error


def _refuse_unknown(environment: Mapping[str, str], fields: Mapping[str, str]) -> None:
    for variable in environment:
        if variable.startswith("CELERITY_") and variable not in fields:
            near = difflib.get_close_matches(variable, fields, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{variable} is not a setting of Celerity{hint}")


def _typed(given: dict[str, str]) -> dict[str, object]:
    keys = given.get("api_keys", "")
    return {**given, "api_keys": [key.strip() for key in keys.split(",") if key.strip()]}


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)
