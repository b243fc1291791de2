"""The store: one object through which the other rooms reach Redis and the payloads."""

from settings import Settings
from store import keys
from store.access import check_access
from store.api_keys import ApiKeys
from store.checkpoints import Checkpoints
from store.claims import Claims
from store.connection import RawRedis, connect
from store.context import Context
from store.counters import Counters
from store.dispatch import Dispatcher, producer
from store.idempotency import IdempotencyStore
from store.janitor import Janitor
from store.logins import Logins
from store.metric_series import MetricSeries
from store.model_resources import AllModelResources
from store.notices import Notices
from store.objects import Objects, open_objects
from store.operations import Operations
from store.payloads import Payloads
from store.scripts import Scripts
from store.sessions import Sessions
from store.signing_secret import SigningSecret
from store.snapshots import Snapshots
from store.uploads import Uploads
from store.workers import Workers
from store.writes import Writes


class Store:
    """Connections are made lazily, so a store may be opened before a fork or before Redis is up."""

    def __init__(self, redis: RawRedis, objects: Objects, dispatcher: Dispatcher, settings: Settings) -> None:
        self._redis = redis
        self._objects = objects
        writes = Writes(redis, objects)
        payloads = Payloads(objects, writes, settings.inline_bytes)
        self._context = context = Context(redis, Scripts(redis), payloads, dispatcher, settings)
        self.sessions = Sessions(context)
        self._notices = Notices(redis)
        self.operations = Operations(context, self.sessions, self._notices)
        self.claims = Claims(context)
        self.snapshots = Snapshots(context, objects, writes)
        self.checkpoints = Checkpoints(context, objects)
        self.workers = Workers(context)
        self.metric_series = MetricSeries(context)
        self.idempotency = IdempotencyStore(context)
        self.api_keys = ApiKeys(context)
        self.logins = Logins(context)
        self.signing_secret = SigningSecret(context)
        self.model_resources = AllModelResources(context, self.sessions)
        self.uploads = Uploads(objects, writes, settings.disk_floor_bytes)
        swept = (self.checkpoints, self.model_resources, writes)
        self.janitor = Janitor(context, self.sessions, self.workers, swept, objects)

    def close(self) -> None:
        """Ends the subscription and the connections."""
        self._notices.close()
        self._redis.close()

    def now(self) -> float:
        """Unix seconds by the one clock that all times in the store are of."""
        return self._context.now()

    def check_writable(self) -> None:
        """Raises one of Unavailable when Redis is away, or takes no writes."""
        self._redis.set(keys.PROBE, "1", ex=60)

    def check_access(self) -> None:
        """Raises ValueError when Redis will not let this process work, one of Unavailable when it is away."""
        check_access(self._redis, self._context.settings.redis)

    def check_broker(self) -> None:
        """Raises kombu's OperationalError or one of Unavailable when messages cannot be sent."""
        self._context.dispatcher.check()

    def check_objects(self) -> None:
        """Raises ValueError when the objects cannot be had, ObjectsAwayError when that may pass."""
        self._objects.check()

    def reach_objects(self) -> None:
        """Raises ObjectsAwayError when objects cannot be read, or there is not even room for a small one."""
        self._objects.reach(room=self._context.settings.inline_bytes)

    def eviction_policy(self) -> str:
        """What Redis does when its memory is full; anything but noeviction may lose operations."""
        return str(self._redis.info("memory").get("maxmemory_policy", "noeviction"))

    def is_durable(self) -> bool:
        """Whether Redis writes down what it is told, so that its end loses a second at most."""
        return bool(self._redis.info("persistence").get("aof_enabled"))

    def counters(self) -> Counters:
        """What has been counted since the store was made, over all owners."""
        return Counters(self._redis.hgetall(keys.COUNTERS))


def open_store(settings: Settings, objects: Objects | None = None) -> Store:
    """The store of `settings.redis_url`, with the objects of the settings unless others are given.

    Requests fail fast when Redis is away, and may be retried. Raises ValueError when the objects cannot be opened.
    """
    opened = objects or open_objects(settings.objects_url, settings.data_dir)
    return Store(connect(settings.redis), opened, Dispatcher(producer(settings.redis)), settings)
