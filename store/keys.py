"""The key table: every Redis key, what it holds, and who may spell it (this file alone).

key                       type   holds
session:{id}              hash   spec, owner, status, step, created_at, updated_at, worker, epoch, reason, next_seq,
                                 snapshot (an object's path), snapshot_of (the checkpoint that the object belongs
                                 to, if it does), covered (the last seq that the snapshot covers), published (step of
                                 the weights that samples use), last_change (the claim of the operation
                                 that changed the adapter last), labels, resources, final (the status it is to end
                                 in), sampled, trained (tokens so far), has_expired (once an operation has expired)
session:{id}:lane         zset   operations not yet ended, by seq
session:{id}:operations   zset   every operation a user asked for and that is kept, by seq
session:{id}:results      zset   those of them that have ended, by ended_at, until they expire
session:{id}:replay       zset   finished operations that the snapshot does not cover, by seq
session:{id}:answers      set    answer keys that live as long as the session
session:{id}:curve        stream what finished operations measured, with the step they belong to
session:{id}:logged       stream what the user logged, with the step it belongs to
session:{id}:logged_names set    the names that it was logged under
session:{id}:requests     zset   ended operations whose request is kept to be looked at, by ended_at
sessions:{STATUS}         zset   sessions of one status, by created_at
sessions:ended            zset   ended sessions, by the time they ended
operation:{id}            hash   session, kind, seq, state, times, timeout (seconds that it may run, if it was asked
                                 for), attempts (those that were not handed back), claim, request, result, error
due                       zset   operations that wait for a worker, by the time they were dispatched
workers                   zset   live workers, by last heartbeat
worker:{id}               hash   announcement (msgpack), capacity, memory
worker:{id}:sessions      set    the sessions it holds
answer:{scope}:{key}      hash   Idempotency-Key: digest, id, answer
checkpoint:{id}           hash   record, owner, session, kind, created_at, folder, deleted (once it is)
checkpoint:{id}:sessions  set    sessions whose snapshot it is, so that its objects outlive its deletion
checkpoints:{scope}       zset   checkpoints by created_at; scope is {owner}:{session}:{kind}, an empty part means any
saves                     zset   folders that a checkpoint is being written to, by the time that was begun
collected                 zset   those folders that became garbage, by that time: they do so once more, a day later
secret                    string what links are signed with
login:{digest of a token}  string the owner who is logged in to the console with the token, until the login ends
api_keys                  zset   every API key that was ever made, by created_at
api_key:{id}              hash   digest, name, created_at, revoked_at, limits of its own
resources:{id}            hash   model resources: spec, status, created_at, updated_at, timeout, kept_until,
                                 final (the status that their sessions end in, once they are stopped), used_at (when
                                 the last of their sessions ended), sessions (how many are kept, ended or not)
resources:{id}:sessions   set    the sessions attached to them that have not ended
resources:READY           zset   those that have not stopped, by created_at
resources:STOPPED         zset   those that have, by the time they did
owner:{id}:resources      zset   the model resources of one owner, by created_at
unreferenced              zset   objects that no record refers to, or none yet, by the time they were written: they are
                                 deleted a day later
owner:{id}:sessions       zset   the sessions of one owner (an API key, or anonymous), by created_at; those of model
                                 resources under {id}:resources
owner:{id}:sessions:{STATUS} zset the same, those of one status
owner:{id}:waiting        set    its operations not yet ended, over all its sessions
owner:{id}:bucket         hash   tokens for requests, and when they were counted
broker:{name}             what Celery keeps: the queues (lists of messages), named by their workers, which queues there
                                 are, and the channels of its remote control
garbage                   set    paths of objects that nothing refers to any more; of folders, with a slash
counters                  hash   what has been counted since the store was made; see counts.py
probe                     string tries what the server lets its user do; see access.py
ended                     channel ids of operations, as they end

One server (or one with replicas), not a cluster: a script touches the keys of one session and of
the indexes together.
"""

import inspect
from collections.abc import Callable

PREFIX = "celerity:"

SESSIONS = PREFIX + "sessions"
SESSIONS_ENDED = SESSIONS + ":ended"
API_KEYS = PREFIX + "api_keys"
DUE = PREFIX + "due"
WORKERS = PREFIX + "workers"
SAVES = PREFIX + "saves"
COLLECTED = PREFIX + "collected"
UNREFERENCED = PREFIX + "unreferenced"
SIGNING_SECRET = PREFIX + "secret"
GARBAGE = PREFIX + "garbage"
COUNTERS = PREFIX + "counters"
BROKER = PREFIX + "broker:"
PROBE = PREFIX + "probe"
ENDED_CHANNEL = PREFIX + "ended"


def session(session_id: str) -> str:
    return f"{PREFIX}session:{session_id}"


def lane(session_id: str) -> str:
    return session(session_id) + ":lane"


def operations(session_id: str) -> str:
    return session(session_id) + ":operations"


def results(session_id: str) -> str:
    return session(session_id) + ":results"


def replay(session_id: str) -> str:
    return session(session_id) + ":replay"


def answers(session_id: str) -> str:
    return session(session_id) + ":answers"


def curve(session_id: str) -> str:
    return session(session_id) + ":curve"


def logged(session_id: str) -> str:
    return session(session_id) + ":logged"


def logged_names(session_id: str) -> str:
    return session(session_id) + ":logged_names"


def requests(session_id: str) -> str:
    return session(session_id) + ":requests"


def sessions_with(status: str) -> str:
    return f"{SESSIONS}:{status}"


def operation(operation_id: str) -> str:
    return f"{PREFIX}operation:{operation_id}"


def worker(worker_id: str) -> str:
    return f"{PREFIX}worker:{worker_id}"


def worker_sessions(worker_id: str) -> str:
    return worker(worker_id) + ":sessions"


def checkpoint(checkpoint_id: str) -> str:
    return f"{PREFIX}checkpoint:{checkpoint_id}"


def checkpoint_sessions(checkpoint_id: str) -> str:
    return checkpoint(checkpoint_id) + ":sessions"


def checkpoints(scope: str) -> str:
    return f"{PREFIX}checkpoints:{scope}"


def resources(resources_id: str) -> str:
    return f"{PREFIX}resources:{resources_id}"


def resources_sessions(resources_id: str) -> str:
    return resources(resources_id) + ":sessions"


def resources_with(status: str) -> str:
    return f"{PREFIX}resources:{status}"


def owner_resources(owner: str) -> str:
    return f"{PREFIX}owner:{owner}:resources"


def answer(scope: str, key: str) -> str:
    return f"{PREFIX}answer:{scope}:{key}"


def login(digest: str) -> str:
    return f"{PREFIX}login:{digest}"


def api_key(key_id: str) -> str:
    return f"{PREFIX}api_key:{key_id}"


def owner_sessions(listed: str) -> str:
    return f"{PREFIX}owner:{listed}:sessions"


def owner_sessions_with(listed: str, status: str) -> str:
    return f"{owner_sessions(listed)}:{status}"


def list_of(owner: str, *, of_resources: bool) -> str:
    """Where the owner's sessions are listed; see list_of in common.lua."""
    return f"{owner}:resources" if of_resources else owner


def owner_waiting(owner: str) -> str:
    return f"{PREFIX}owner:{owner}:waiting"


def bucket(owner: str) -> str:
    return f"{PREFIX}owner:{owner}:bucket"


FAMILIES = (
    session, lane, operations, results, replay, answers, curve, logged, logged_names, requests, sessions_with,
    operation, worker, worker_sessions, api_key, owner_sessions, owner_sessions_with, owner_waiting, bucket,
    checkpoint, checkpoint_sessions, checkpoints, resources, resources_sessions, resources_with, owner_resources,
)  # fmt: skip


def lua_table() -> str:
    """The same names for the scripts, so that they are spelled once: `keys.lane(id)`."""
    functions = [f"{family.__name__} = {_lua_function(family)}" for family in FAMILIES]
    constants = {
        "sessions_ended": SESSIONS_ENDED,
        "due": DUE,
        "workers": WORKERS,
        "api_keys": API_KEYS,
        "unreferenced": UNREFERENCED,
    }
    constants |= {"saves": SAVES, "collected": COLLECTED, "garbage": GARBAGE, "counters": COUNTERS}
    constants |= {"ended_channel": ENDED_CHANNEL}
    named = [f"{name} = '{key}'" for name, key in constants.items()]
    return "local keys = {\n  " + ",\n  ".join(named + functions) + "\n}\n"


def _lua_function(family: Callable[..., str]) -> str:
    """The family's Python function in Lua: its text between the places where its arguments stood."""
    names = list(inspect.signature(family).parameters)
    pieces = family(*(f"\0{name}\0" for name in names)).split("\0")
    parts = [piece if place % 2 else f"'{piece}'" for place, piece in enumerate(pieces)]
    return f"function({', '.join(names)}) return {' .. '.join(parts)} end"
