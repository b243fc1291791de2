"""A bucket that does not do what is asked of it."""

import random
import time

from tests.chaos.deployment import Deployment
from tests.chaos.object_store import BucketProxy

# Longer than a heartbeat may be missed.
FAULTY_SECONDS = 4.0
DELAY_SECONDS = 0.5
BROKEN_OFF = 0.3


def lose_bucket(deployment: Deployment, _: random.Random) -> None:
    """It refuses connections."""
    bucket = _bucket(deployment)
    bucket.cut()
    time.sleep(FAULTY_SECONDS)
    bucket.restore()


def refuse_objects(deployment: Deployment, _: random.Random) -> None:
    """It answers 503, Slow Down."""
    bucket = _bucket(deployment)
    bucket.is_busy = True
    bucket.drop_connections()
    time.sleep(FAULTY_SECONDS)
    bucket.is_busy = False


def break_off_objects(deployment: Deployment, _: random.Random) -> None:
    """What is written or read breaks off, or the answer to it."""
    bucket = _bucket(deployment)
    bucket.broken_off = BROKEN_OFF
    time.sleep(FAULTY_SECONDS)
    bucket.broken_off = 0.0


def slow_objects(deployment: Deployment, _: random.Random) -> None:
    bucket = _bucket(deployment)
    bucket.delay = DELAY_SECONDS
    time.sleep(FAULTY_SECONDS)
    bucket.delay = 0.0


def _bucket(deployment: Deployment) -> BucketProxy:
    assert deployment.bucket is not None
    return deployment.bucket
