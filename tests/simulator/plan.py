"""What a history consists of, drawn from its seed: processes, settings, clients and their steps, and faults."""

from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from domain.operation import OperationKind
from domain.time_limits import TimeLimits
from settings import DAY, Settings
from tests.simulator.faults import Fault
from tests.simulator.numbers import BAD_INPUT, NOT_FINITE

K = OperationKind


class Act(StrEnum):
    """What a client does beside asking for operations."""

    CANCEL = "cancel"
    AGAIN = "again"
    WAIT = "wait"
    REST = "rest"
    MOVE_ON = "move-on"


class Step(NamedTuple):
    """`name` is unique in a history: it names the step's random numbers and the ids it makes."""

    name: str
    what: OperationKind | Act
    number: int


class Program(NamedTuple):
    """What one client does, and whether it waits for what it asked for before it stops its session."""

    name: str
    steps: tuple[Step, ...]
    publishes: bool
    is_patient: bool


class Plan(NamedTuple):
    seed: int
    workers: int
    apis: int
    programs: tuple[Program, ...]
    settings: Settings
    kinds: tuple[Fault, ...]
    rate: float
    calm_after: float
    spared: frozenset[str] = frozenset()

    @property
    def loses_tails(self) -> bool:
        return Fault.LOST_TAIL in self.kinds


OFTEN = [K.FORWARD_BACKWARD] * 6 + [K.OPTIM_STEP] * 5 + [K.SAMPLE] * 5 + [K.TRAINING_CHECKPOINT] * 2
ACTS = [Act.CANCEL, Act.CANCEL, Act.AGAIN, Act.AGAIN, Act.WAIT, Act.REST, Act.MOVE_ON]


def plan(seed: int) -> Plan:
    draw = Random(seed)
    kinds = tuple(fault for fault in Fault if draw.random() < 0.4)
    return Plan(
        seed=seed,
        workers=draw.choice([1, 2, 2, 2, 3]),
        apis=draw.choice([1, 2]),
        programs=tuple(_program(draw, f"c{number}") for number in range(draw.choice([1, 1, 2, 2, 3]))),
        settings=_settings(draw),
        kinds=kinds,
        rate=draw.choice([0.005, 0.02, 0.02, 0.05, 0.1]),
        calm_after=draw.choice([5.0, 10.0, 20.0, 40.0]),
    )


def _program(draw: Random, name: str) -> Program:
    publishes = draw.random() < 0.2
    pool: list[OperationKind | Act] = [*OFTEN, *ACTS, *([K.WEIGHTS_SYNC] * 3 if publishes else [])]
    whats = [draw.choice(pool) for _ in range(draw.randint(2, 9))]
    steps = tuple(Step(f"{name}.{place}", what, _number(draw, what)) for place, what in enumerate(whats))
    return Program(name, steps, publishes, draw.random() < 0.8)


def _number(draw: Random, what: OperationKind | Act) -> int:
    number = draw.randint(1, 1_000_000)
    if what is K.FORWARD_BACKWARD and draw.random() < 0.1:
        return BAD_INPUT
    if what is K.OPTIM_STEP and draw.random() < 0.2:
        return NOT_FINITE
    return number


def _settings(draw: Random) -> Settings:
    drawn: dict[str, Any] = {
        "inline_bytes": draw.choice([0, 1 << 20]),
        "resident_sessions": draw.choice([1, 2, 64]),
        "snapshot_steps": draw.choice([1, 2, 10]),
        "max_running_samples": draw.choice([1, 2, 3]),
        "max_waiting_operations": draw.choice([3, 100]),
        "requests_kept": draw.choice([0, 2]),
        "most_attempts": draw.choice([3, 5]),
    }
    limits: dict[str, Any] = dict.fromkeys(TimeLimits.__struct_fields__, 40.0)
    return Settings(
        data_dir=Path("/nowhere"), device="cpu", torch_threads=1, heartbeat_interval=5.0, heartbeat_timeout=11.0,
        redispatch_after=4.0, drain_seconds=15.0, checkpoint_retention=3 * DAY, objects_timeout=20.0, **limits, **drawn,
    )  # fmt: skip
