"""Every kind of fault, and how often it is drawn beside the others."""

import random
from collections.abc import Callable

from tests.chaos.deployment import Deployment
from tests.chaos.faults import clocks, disks, messages, network, processes, refusals

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
    clocks.jump_clock: 4,
}
NEED_DISKS = (disks.fill_objects_disk, disks.fill_valkey_disk)


def possible(deployment: Deployment) -> dict[Fault, int]:
    """The weights of those that can be tried here."""
    lacking = () if deployment.disks else NEED_DISKS
    return {fault: weight for fault, weight in WEIGHTS.items() if fault not in lacking}


def draw(weights: dict[Fault, int], rng: random.Random, total: int) -> list[Fault]:
    """So many, in a random order: each kind once where there are enough, and the rest by weight."""
    kinds = list(weights)
    drawn = rng.sample(kinds, min(total, len(kinds)))
    drawn += rng.choices(kinds, list(weights.values()), k=total - len(drawn))
    return rng.sample(drawn, total)
