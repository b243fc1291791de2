"""What is left when every session has been stopped, every checkpoint deleted, and all times are over: nothing."""

from contextlib import closing

import msgspec

from settings import Settings
from store import keys
from store.connection import RawRedis, connect
from store.store import open_store
from tests.chaos import checkpoints
from tests.chaos.object_store import object_paths
from tests.chaos.story import Story
from tests.waiting import eventually

# A folder that is deleted is deleted once more a day later.
SWEEPS = 3
# Of the server as a whole and of its workers.
KEPT = tuple(f"{keys.PREFIX}{name}".encode() for name in ("counters", "broker:", "worker", "secret", "probe"))
# Of model resources, which outlive their sessions.
RESOURCES = b"resources"


def end_all(stories: list[Story]) -> None:
    for story in stories:
        for run in story.sessions:
            if not run.is_stopped:
                story.api(run).stop(run.session_id, f"{run.name}-end", with_resources=False)
            for id in checkpoints.kept(run):
                story.client.delete(f"/v1/rl/checkpoints/{id}")


def left_over(settings: Settings) -> list[str]:
    """One line for each object and each key that should be gone."""
    over = msgspec.structs.replace(settings, session_retention=0.0, result_retention=0.0)
    with closing(open_store(over)) as store, closing(connect(settings.redis)) as redis:
        eventually(lambda: not redis.zcard(keys.sessions_with("STOPPING")))
        for _ in range(SWEEPS):
            _age(redis)
            store.janitor.sweep()
        found = [key for key in redis.scan_iter(f"{keys.PREFIX}*") if redis.ttl(key) == -1 and not _is_kept(key)]
    objects = [f"{path} is left over" for path in object_paths(settings)]
    return [f"the key {key.decode()} is left over" for key in found] + objects


def _is_kept(key: bytes) -> bool:
    return key.startswith(KEPT) or RESOURCES in key


def _age(redis: RawRedis) -> None:
    """Whatever goes after a day may go now."""
    for key in (keys.UNREFERENCED, keys.COLLECTED):
        if members := redis.zrange(key, 0, -1):
            redis.zadd(key, dict.fromkeys(members, 0))
