"""Every setting, read once from the environment: honoured, or refused with the name of the offender."""

import difflib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from domain.limits import LEAST_BODY_LIMIT, MOST_SAMPLES, Limits
from domain.redis_url import RedisUrl, read_redis_url
from domain.time_limits import TimeLimits

DAY = 86_400.0
# Of whoever calls the server, from the same terminal perhaps; see cli/remote.py.
CLIENT_VARIABLES = ("CELERITY_CLIENT_URL", "CELERITY_CLIENT_KEY")
MOST_SECONDS = 36_500 * DAY
# Settings with several values, between commas.
LISTS = {"api_keys", "hub_models"}
# With any of these Celery speaks to that server, whatever its configuration says, and no operation would ever end.
CELERY_VARIABLES = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND")

Count = Annotated[int, msgspec.Meta(ge=1)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=MOST_SECONDS)]
SecondsOrNone = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
# What can be sent in a header as it stands.
ApiKey = Annotated[str, msgspec.Meta(pattern=r"^[!-~]+$")]
# Of hub ids, as a shell has them.
HubPattern = Annotated[str, msgspec.Meta(pattern=r"^[\w.\-/*?]+$")]
RateOrNone = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, sizes in bytes. Each field is the environment variable of the same
    name in capitals behind CELERITY_, save `data_dir` (DATA_DIR)."""

    data_dir: Path = Path(".data")
    redis_url: str = "redis://127.0.0.1:6379/0"
    objects_url: str = ""
    models_dir: Path | None = None
    hub_models: tuple[HubPattern, ...] = ()
    api_keys: tuple[ApiKey, ...] = ()
    open_metrics: bool = False
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["text", "json"] = "text"
    traces: bool = False

    # Engine
    device: Annotated[str, msgspec.Meta(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    kernels: Literal["auto", "native", "torch"] = "auto"
    # These two are read in workers/engine/kernels/, where benchmarks and tests load the kernels too.
    cpu_level: Literal["auto", "v3", "v4", "v4-bf16", "v4-amx", "neon"] = "auto"
    kernels_dir: Path | None = None
    torch_threads: CountOrNone = 0
    horizon: Count = 1024
    micro_batch_tokens: Count = 2048
    max_batch_sequences: Count = 64
    merge_training: bool = True
    model_load_timeout: Seconds = 3600.0

    # Workers
    worker_threads: Count = 512
    heartbeat_interval: Seconds = 1.0
    heartbeat_timeout: Seconds = 8.0
    broker_check_interval: Seconds = 10.0
    redispatch_after: Seconds = 10.0
    drain_seconds: Seconds = 25.0
    max_worker_sessions: Count = 256
    resident_sessions: Count = 64
    reserved_bytes: CountOrNone = 512 * 1024 * 1024
    most_attempts: Count = 5
    snapshot_steps: Count = 10
    snapshot_seconds: Seconds = 60.0
    objects_timeout: Seconds = 3600.0

    # Requests
    max_body_bytes: Count = Limits().max_body_bytes
    max_inflight_body_bytes: Count = 512 * 1024 * 1024
    arrival_timeout: Seconds = 20.0
    max_samples_per_call: Annotated[int, msgspec.Meta(ge=1, le=MOST_SAMPLES)] = Limits().max_samples_per_call
    max_num_samples: Count = Limits().max_num_samples
    max_rank: Count = Limits().max_rank
    max_waiting_operations: Count = Limits().max_waiting_operations
    max_running_samples: Count = 16
    max_held_requests: CountOrNone = 256
    default_wait: SecondsOrNone = 1.0
    polling_wait: SecondsOrNone = 20.0
    max_wait: SecondsOrNone = 30.0
    inline_bytes: CountOrNone = 1024 * 1024

    # What operations may take, from when they begin to run
    create_session_timeout: Seconds = TimeLimits().create_session_timeout
    sample_timeout: Seconds = TimeLimits().sample_timeout
    forward_backward_timeout: Seconds = TimeLimits().forward_backward_timeout
    optim_step_timeout: Seconds = TimeLimits().optim_step_timeout
    weights_sync_timeout: Seconds = TimeLimits().weights_sync_timeout
    checkpoint_timeout: Seconds = TimeLimits().checkpoint_timeout

    # Of one API key; 0 is no limit, and a key may have limits of its own
    max_sessions_per_key: CountOrNone = 0
    max_waiting_per_key: CountOrNone = 0
    max_rate_per_key: RateOrNone = 0.0
    max_body_bytes_per_key: CountOrNone = 0

    # Retention
    session_retention: SecondsOrNone = 7 * DAY
    result_retention: SecondsOrNone = DAY
    results_kept: Count = 1000
    curve_points: CountOrNone = 5000
    requests_kept: CountOrNone = 32
    idle_timeout: SecondsOrNone = 0.0

    # Checkpoints; 0 is off
    checkpoints_kept: CountOrNone = 0
    checkpoint_retention: SecondsOrNone = 0.0
    disk_floor_bytes: CountOrNone = 1024**3
    link_seconds: Count = 3600
    public_url: str = ""

    @property
    def limits(self) -> Limits:
        return Limits(**{name: getattr(self, name) for name in Limits.__struct_fields__})

    @property
    def time_limits(self) -> TimeLimits:
        return TimeLimits(**{name: getattr(self, name) for name in TimeLimits.__struct_fields__})

    @property
    def redis(self) -> RedisUrl:
        """Where `redis_url` leads; ValueError when it is none that Celerity can use."""
        return read_redis_url(self.redis_url)

    @property
    def embedded_url_file(self) -> Path:
        """Where the local stack writes the URL of its own server, for commands that are run beside it."""
        return self.data_dir / "valkey" / "url"


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment; an empty variable is an absent one.

    Raises:
        ValueError: a CELERITY_ name that is not a setting, a value that its setting does not take, a variable with
            which Celery would overrule them, or traces without the packages that they need.
    """
    _refuse_unknown(environment)
    _refuse_overruling(environment)
    given: dict[str, object] = {
        name: environment[_variable(name)] for name in Settings.__struct_fields__ if environment.get(_variable(name))
    }
    for name in LISTS & given.keys():
        given[name] = [part.strip() for part in str(given[name]).split(",") if part.strip()]
    settings = msgspec.convert({}, Settings)
    for name, value in given.items():
        settings = msgspec.structs.replace(settings, **{name: _convert(name, value)})
    _check_redis_url(settings)
    _check_bodies(settings)
    if settings.traces and not _can_trace():
        raise ValueError("CELERITY_TRACES needs packages that are not here: pip install -r requirements-traces.txt")
    return settings


def _check_redis_url(settings: Settings) -> None:
    try:
        read_redis_url(settings.redis_url)
    except ValueError as error:
        raise ValueError(f"CELERITY_REDIS_URL has a value that it does not take: {error}") from error


def _check_bodies(settings: Settings) -> None:
    if settings.max_inflight_body_bytes < settings.max_body_bytes:
        raise ValueError(
            f"CELERITY_MAX_INFLIGHT_BODY_BYTES has a value that it does not take: a body may have "
            f"{settings.max_body_bytes} bytes (CELERITY_MAX_BODY_BYTES), so less could hold none"
        )
    if 0 < settings.max_body_bytes_per_key < LEAST_BODY_LIMIT:
        raise ValueError(
            "CELERITY_MAX_BODY_BYTES_PER_KEY has a value that it does not take: "
            f"must be at least {LEAST_BODY_LIMIT}, or 0"
        )


def _can_trace() -> bool:
    try:
        return find_spec("opentelemetry.instrumentation.celery") is not None
    except ModuleNotFoundError:
        # A package above it is missing too.
        return False


def _convert(name: str, value: object) -> object:
    """One value, on its own, so that the error can name its variable."""
    try:
        converted = msgspec.convert({name: value}, Settings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
        raise ValueError(f"{_variable(name)} has a value that it does not take: {reason}") from error
    return getattr(converted, name)


def _variable(name: str) -> str:
    return "DATA_DIR" if name == "data_dir" else f"CELERITY_{name.upper()}"


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    known = {*CLIENT_VARIABLES, *(_variable(name) for name in Settings.__struct_fields__)}
    for variable in environment:
        if variable.startswith("CELERITY_") and variable not in known:
            near = difflib.get_close_matches(variable, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{variable} is not a setting of Celerity{hint}")


def _refuse_overruling(environment: Mapping[str, str]) -> None:
    for variable in CELERY_VARIABLES:
        if environment.get(variable):
            raise ValueError(f"{variable} would overrule CELERITY_REDIS_URL in Celery: unset it")


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(kind)
