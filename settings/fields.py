"""What there is to set. The strings below the fields are docs/settings.md; see page.py."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from domain.limits import MOST_SAMPLES, Limits
from domain.redis_url import RedisUrl, read_redis_url
from domain.time_limits import TimeLimits

DAY = 86_400.0
MOST_SECONDS = 36_500 * DAY

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
    """Times in seconds, sizes in bytes. Each field is the environment variable that `variable_of` names."""

    # Data and models
    data_dir: Path = Path(".data")
    """Where the local stack keeps Valkey's append-only file, and objects lie; closed to all but its owner."""
    redis_url: str = "redis://127.0.0.1:6379/0"
    """A server of your own, `redis://`, `rediss://` (TLS) or `unix://`, with `maxmemory-policy noeviction`
    ([more](operations.md#redis)). Without one, `celerity up` brings an embedded one."""
    objects_url: str = ""
    """Checkpoints, snapshots and large payloads: `s3://bucket/prefix`, or `file:///folder` for one that exists.
    Without one they are in `DATA_DIR/objects`."""
    models_dir: Path | None = None
    """Each Hugging Face directory below it is served under its relative path, or refused with the reason
    ([more](models.md))."""
    hub_models: tuple[HubPattern, ...] = ()
    """Hub ids that a client may have fetched, with `*` and `?`, between commas: `Qwen/*,HuggingFaceTB/SmolLM2-*`. What
    lies in the hub's cache is served anyway."""
    model_load_timeout: Seconds = 3600.0
    """Seconds that a base model may take to load; other models are worked on meanwhile."""

    # Access
    api_keys: tuple[ApiKey, ...] = ()
    """Between commas; clients send `Authorization: Bearer <key>`. Beside those that [the command
    line](operations.md#keys) makes."""
    max_sessions_per_key: CountOrNone = 0
    """Sessions of one API key that have not ended; 0 is no limit. A key may have limits of its own, here and below."""
    max_waiting_per_key: CountOrNone = 0
    """Operations of one API key that have not ended, over all its sessions; 0 is no limit."""
    max_rate_per_key: RateOrNone = 0.0
    """Requests a second of one API key; 0 is no limit."""
    max_body_bytes_per_key: CountOrNone = 0
    """Bytes of one request's body, for one API key; 0 is the limit for all."""
    open_metrics: bool = False
    """Whether `/metrics` (Prometheus) answers without a key."""
    public_url: str = ""
    """The address that clients use, where a proxy changes the host: links lead there, and a server without keys is
    served under it."""

    # Logs and traces
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The least level that is logged."""
    log_format: Literal["text", "json"] = "text"
    """With `json`, a line of JSON each, with request, session and operation ids."""
    traces: bool = False
    """OpenTelemetry traces of every operation ([more](operations.md#watching))."""

    # Engine
    device: Annotated[str, msgspec.Meta(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    """`cpu`, `cuda` or `cuda:N`; by itself a GPU where torch has one."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the frozen base model; adapters are float32."""
    kernels: Literal["auto", "native", "torch"] = "auto"
    """On CPUs: our own kernels where they were built and are faster than torch's operations, which a worker measures
    as it starts; `native` insists on them, `torch` does without."""
    # These two are read in workers/engine/kernels/, where benchmarks and tests load the kernels too.
    cpu_level: Literal["auto", "v3", "v4", "v4-bf16", "v4-amx", "neon"] = "auto"
    """The instruction level of the kernels: `v3` is AVX2, `v4` AVX-512; by itself the best of the processor."""
    kernels_dir: Path | None = None
    """Where `make setup` puts the kernels that it builds, and workers find them; by itself a folder in the user's
    cache."""
    torch_threads: CountOrNone = 0
    """Threads that compute; 0 is torch's own choice, within a container's CPU quota."""
    horizon: Count = 1024
    """`H` of the `fixed_horizon` aggregation, for calls that are accepted from now on."""
    micro_batch_tokens: Count = 2048
    """Most tokens of one pass; lower for less memory and fairer turns, higher on a GPU."""
    max_batch_sequences: Count = 64
    """Sequences that decode together."""
    merge_training: bool = True
    """Whether forward-backwards of several sessions share passes."""

    # Workers
    heartbeat_interval: Seconds = 1.0
    """Seconds between two signs of life of a worker."""
    heartbeat_timeout: Seconds = 8.0
    """Seconds without one after which a worker is lost, and its sessions move to others."""
    broker_check_interval: Seconds = 10.0
    """Seconds after which a worker looks whether a silent connection to the broker still carries anything."""
    redispatch_after: Seconds = 10.0
    """Seconds after which the message of an operation that has not begun is sent again."""
    drain_seconds: Seconds = 25.0
    """Seconds that a worker which is asked to end may take for what runs; less than what its container is given."""
    most_attempts: Count = 5
    """Workers that may die with an operation before it ends FAILED."""
    max_worker_sessions: Count = 256
    """Sessions that one worker takes."""
    resident_sessions: Count = 64
    """Adapters that a worker keeps in memory; the others are restored when they are needed."""
    reserved_bytes: CountOrNone = 512 * 1024 * 1024
    """Bytes of memory that adapters leave free."""
    snapshot_steps: Count = 10
    """Optim-steps of a session after which its adapter is written to objects, so that less is run again when a worker
    is lost."""
    snapshot_seconds: Seconds = 60.0
    """Seconds after which the next optim-step writes one, however few steps there were."""
    objects_timeout: Seconds = 3600.0
    """Seconds that a worker waits for object storage that is away before the operation fails."""

    # Requests
    max_body_bytes: Count = Limits().max_body_bytes
    """Bytes of one request's body."""
    max_inflight_body_bytes: Count = 512 * 1024 * 1024
    """Bytes of bodies over 64 KiB that one API process holds at once; beyond it a 503. Reading one takes up to five
    times its size in memory, and one of single digits 15 times until it is stored."""
    arrival_timeout: Seconds = 20.0
    """Seconds that a client may take to send a request or read an answer, or longer at 10 kB/s."""
    max_samples_per_call: Annotated[int, msgspec.Meta(ge=1, le=MOST_SAMPLES)] = Limits().max_samples_per_call
    """Samples of one forward-backward."""
    max_num_samples: Count = Limits().max_num_samples
    """Completions of one prompt (`num_samples`)."""
    max_rank: Count = Limits().max_rank
    """Rank of an adapter."""
    max_waiting_operations: Count = Limits().max_waiting_operations
    """Operations of one session that have not ended; beyond it a 429."""
    max_running_samples: Count = 16
    """Samples of one session that run at once."""
    max_held_requests: CountOrNone = 256
    """GETs that one API process holds until their operation has ended; further ones are answered at once."""
    default_wait: SecondsOrNone = 1.0
    """Seconds that a GET of an unfinished operation is held where the client states no wait."""
    polling_wait: SecondsOrNone = 20.0
    """The same under `/together`, whose SDK polls."""
    max_wait: SecondsOrNone = 30.0
    """Most seconds that `Prefer: wait=N` is followed for; less than a proxy's timeout."""
    inline_bytes: CountOrNone = 1024 * 1024
    """The largest request or result that is kept in Redis; larger ones are objects."""

    # Time limits
    create_session_timeout: Seconds = TimeLimits().create_session_timeout
    """Seconds that creating a session may take, from when it begins ([more](operations.md#time-limits))."""
    sample_timeout: Seconds = TimeLimits().sample_timeout
    """The same for a sample; a request may ask for less with `timeout_seconds`, here and below."""
    forward_backward_timeout: Seconds = TimeLimits().forward_backward_timeout
    """The same for a forward-backward."""
    optim_step_timeout: Seconds = TimeLimits().optim_step_timeout
    """The same for an optim-step."""
    weights_sync_timeout: Seconds = TimeLimits().weights_sync_timeout
    """The same for a weights-sync."""
    checkpoint_timeout: Seconds = TimeLimits().checkpoint_timeout
    """The same for a checkpoint."""

    # Retention
    session_retention: SecondsOrNone = 7 * DAY
    """Seconds that an ended session is kept with all that belongs to it."""
    result_retention: SecondsOrNone = DAY
    """Seconds that a result of a live session is kept at least."""
    results_kept: Count = 1000
    """Newest results of a session that are kept however old they are."""
    curve_points: CountOrNone = 5000
    """Points of a session's curves that are kept, and of what is logged."""
    requests_kept: CountOrNone = 32
    """Newest requests of a session that the console can show."""
    idle_timeout: SecondsOrNone = 0.0
    """Seconds without an operation after which a session is stopped; 0 is never."""

    # Checkpoints
    checkpoints_kept: CountOrNone = 0
    """Newest checkpoints of each session and kind that are kept; 0 is all."""
    checkpoint_retention: SecondsOrNone = 0.0
    """Seconds that a checkpoint is kept; 0 is for ever."""
    disk_floor_bytes: CountOrNone = 1024**3
    """Bytes of the disk that a checkpoint, or a model from the hub, must leave free."""
    link_seconds: Count = 3600
    """Seconds that a link to a file is good for."""

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


def variable_of(name: str) -> str:
    """The environment variable of a field."""
    return "DATA_DIR" if name == "data_dir" else f"CELERITY_{name.upper()}"
