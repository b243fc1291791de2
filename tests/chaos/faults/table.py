"""Every kind of fault, and how often it is drawn beside the others."""

import random
from collections.abc import Callable, Mapping

from tests.chaos.deployment import Deployment
from tests.chaos.faults import clocks, disks, messages, network, objects, processes, refusals

Fault = Callable[[Deployment, random.Random], None]

WEIGHTS: dict[Fault, int] = {
    processes.kill_worker: 12,
    processes.kill_api: 4,
    processes.kill_api_process: 4,
    processes.kill_valkey: 4,
    processes.kill_replica: 1,
    processes.drain_worker: 4,
    processes.drain_api: 2,
    processes.stall_worker: 3,
    processes.freeze_valkey: 1,
    messages.lose_messages: 4,
    messages.repeat_messages: 3,
    network.cut_connections: 4,
    network.cut_off_worker: 3,
    network.blackhole_worker: 2,
    network.blackhole_api: 1,
    refusals.readonly: 2,
    refusals.misconf: 2,
    refusals.noreplicas: 2,
    refusals.out_of_memory: 2,
    refusals.fail_over: 3,
    disks.fill_objects_disk: 3,
    disks.fill_valkey_disk: 2,
    objects.lose_bucket: 3,
    objects.refuse_objects: 3,
    objects.break_off_objects: 3,
    objects.slow_objects: 3,
    clocks.jump_clock: 4,
}
NEED_OBJECTS_DISK: set[Fault] = {disks.fill_objects_disk}
NEED_DISKS: set[Fault] = {*NEED_OBJECTS_DISK, disks.fill_valkey_disk}
NEED_BUCKET: tuple[Fault, ...] = (
    objects.lose_bucket,
    objects.refuse_objects,
    objects.break_off_objects,
    objects.slow_objects,
)


def impossible(deployment: Deployment) -> set[Fault]:
    """Those that need what the deployment has not: a bucket, or file systems that could be mounted."""
    lacking = set(NEED_OBJECTS_DISK if deployment.bucket else NEED_BUCKET)
    return lacking if deployment.disks else lacking | NEED_DISKS


def draw(weights: Mapping[Fault, int], rng: random.Random, total: int) -> list[Fault]:
    """So many, in a random order: each kind once where there are enough, and the rest by weight."""
    kinds = list(weights)
    drawn = rng.sample(kinds, min(total, len(kinds)))
    drawn += rng.choices(kinds, list(weights.values()), k=total - len(drawn))
    return rng.sample(drawn, total)
