"""The key table: every Redis key, its type and what it holds. Nothing else spells a key, Lua included.

One server (or one with replicas), not a cluster: a script touches the keys of one session and of
the indexes together.
"""

PREFIX = "celerity:"


class Key(str):
    """A key of which there is one. `type` is Redis' type of it, `holds` what it holds."""

    type: str
    holds: str

    def __new__(cls, name: str, type: str, holds: str) -> "Key":
        key = super().__new__(cls, PREFIX + name)
        key.type, key.holds = type, holds
        return key

    @property
    def lua(self) -> str:
        return f"'{self}'"


class KeyFamily:
    """The keys of one pattern, in which each {} stands for an argument."""

    def __init__(self, pattern: str, type: str, holds: str) -> None:
        self._parts = (PREFIX + pattern).split("{}")
        self.type, self.holds = type, holds

    def __call__(self, *arguments: str) -> str:
        first, *rest = self._parts
        return first + "".join(argument + part for argument, part in zip(arguments, rest, strict=True))

    @property
    def lua(self) -> str:
        names = [f"a{place}" for place in range(1, len(self._parts))]
        first, *rest = (f"'{part}'" for part in self._parts)
        text = " .. ".join([first, *(f"{name} .. {part}" for name, part in zip(names, rest, strict=True))])
        return f"function({', '.join(names)}) return {text} end"


session = KeyFamily(
    "session:{}",
    "hash",
    "spec, owner, status, step, created_at, updated_at, worker, epoch, reason, next_seq, snapshot (an object's path), "
    "snapshot_of (the checkpoint that the object belongs to, if it does), covered (the last seq that the snapshot "
    "covers), published (step of the weights that samples use), last_change (the claim of the operation that changed "
    "the adapter last), labels, resources, final (the status it is to end in), sampled, trained (tokens so far), "
    "has_expired (once an operation has expired)",
)
session_queue = KeyFamily("session:{}:queue", "zset", "operations not yet ended, by seq")
operations = KeyFamily("session:{}:operations", "zset", "every operation a user asked for and that is kept, by seq")
results = KeyFamily("session:{}:results", "zset", "those of them that have ended, by ended_at, until they expire")
replay = KeyFamily("session:{}:replay", "zset", "finished operations that the snapshot does not cover, by seq")
session_idempotency = KeyFamily("session:{}:idempotency", "set", "Idempotency-Keys that live as long as the session")
series = KeyFamily("session:{}:series", "stream", "what finished operations measured, with the step they belong to")
logged = KeyFamily("session:{}:logged", "stream", "what the user logged, with the step it belongs to")
logged_names = KeyFamily("session:{}:logged_names", "set", "the names that it was logged under")
requests = KeyFamily("session:{}:requests", "zset", "ended operations whose request is kept to be shown, by ended_at")
sessions_with = KeyFamily("sessions:{}", "zset", "sessions of one status, by created_at")
SESSIONS_ENDED = Key("sessions:ended", "zset", "ended sessions, by the time they ended")
operation = KeyFamily(
    "operation:{}",
    "hash",
    "session, kind, seq, state, times, timeout (seconds that it may run, if it was asked for), attempts (those that "
    "were not handed back), claim, request, result, error",
)
DUE = Key("due", "zset", "operations that wait for a worker, by the time they were dispatched")
WORKERS = Key("workers", "zset", "live workers, by last heartbeat")
worker = KeyFamily("worker:{}", "hash", "announcement (msgpack), capacity, memory")
worker_sessions = KeyFamily("worker:{}:sessions", "set", "the sessions it holds")
idempotency = KeyFamily("idempotency:{}:{}", "hash", "of an Idempotency-Key, by scope and key: digest, id, answer")
checkpoint = KeyFamily(
    "checkpoint:{}", "hash", "record, owner, session, kind, created_at, folder, deleted (once it is)"
)
checkpoint_sessions = KeyFamily(
    "checkpoint:{}:sessions", "set", "sessions whose snapshot it is, so that its objects outlive its deletion"
)
checkpoints = KeyFamily(
    "checkpoints:{}", "zset", "checkpoints by created_at, of owner:session:kind, where an empty part means any"
)
SAVES = Key("saves", "zset", "folders that a checkpoint is being written to, by the time that was begun")
COLLECTED = Key("collected", "zset", "those folders that became garbage, by that time: they do so again a day later")
SIGNING_SECRET = Key("secret", "string", "what links are signed with")
login = KeyFamily("login:{}", "string", "the owner who is logged in to the console with the token of this digest")
API_KEYS = Key("api_keys", "zset", "every API key that was ever made, by created_at")
api_key = KeyFamily("api_key:{}", "hash", "digest, name, created_at, revoked_at, limits of its own")
resources = KeyFamily(
    "resources:{}",
    "hash",
    "model resources: spec, status, created_at, updated_at, timeout, kept_until, final (the status that their sessions "
    "end in, once they are stopped), used_at (when the last of their sessions ended), sessions (how many are kept, "
    "ended or not)",
)
resources_sessions = KeyFamily("resources:{}:sessions", "set", "the sessions attached to them that have not ended")
resources_with = KeyFamily("resources:{}", "zset", "those that are READY, by created_at, or STOPPED, by when they were")
owner_resources = KeyFamily("owner:{}:resources", "zset", "the model resources of one owner, by created_at")
UNREFERENCED = Key(
    "unreferenced",
    "zset",
    "objects that no record refers to, or none yet, by the time they were written: they are deleted a day later",
)
owner_sessions = KeyFamily(
    "owner:{}:sessions", "zset", "the sessions of one owner, as `list_of` names it, by created_at"
)
owner_sessions_with = KeyFamily("owner:{}:sessions:{}", "zset", "the same, those of one status")
owner_waiting = KeyFamily("owner:{}:waiting", "set", "the owner's operations not yet ended, over all its sessions")
bucket = KeyFamily("owner:{}:bucket", "hash", "tokens for requests, and when they were counted")
BROKER = Key(
    "broker:",
    "prefix",
    "of what Celery keeps: the queues (lists of messages), named by their workers, which queues there are, and the "
    "channels of its remote control",
)
GARBAGE = Key("garbage", "set", "paths of objects that nothing refers to any more; of folders, with a slash")
COUNTERS = Key("counters", "hash", "what has been counted since the store was made; see counters.py")
PROBE = Key("probe", "string", "tries what the server lets its user do; see access.py")
ENDED_CHANNEL = Key("ended", "channel", "ids of operations, as they end")


def list_of(owner: str, *, of_resources: bool) -> str:
    """Where the owner's sessions are listed: those of model resources apart from the others, since each API lists its
    own. The same function is in common.lua."""
    return f"{owner}:resources" if of_resources else owner


def lua_table() -> str:
    """The same keys for the scripts: `keys.session(id)`, `keys.due`."""
    found = {name.lower(): key for name, key in globals().items() if isinstance(key, Key | KeyFamily)}
    return "local keys = {\n  " + ",\n  ".join(f"{name} = {key.lua}" for name, key in found.items()) + "\n}\n"
