"""What a history consists of, drawn from its seed: processes, settings, clients and their steps, and faults."""

from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from domain.operation import OperationKind
from domain.time_limits import TimeLimits
from settings import DAY, Settings
from tests.simulator.adapter import BAD_INPUT, NOT_FINITE
from tests.simulator.faults import Fault

K = OperationKind


class Act(StrEnum):
    """What a client does beside asking for operations."""

    CANCEL = "cancel"
    RETRY = "retry"
    WAIT = "wait"
    PAUSE = "pause"
    RESUME = "resume"


Steps = tuple[OperationKind | Act, ...]


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
    """The paces are how many times as long as a call of the store one of the engine, or a message, takes."""

    seed: int
    workers: int
    apis: int
    programs: tuple[Program, ...]
    settings: Settings
    kinds: tuple[Fault, ...]
    rate: float
    calm_after: float
    engine_pace: float
    broker_pace: float
    suppressed: frozenset[str] = frozenset()

    @property
    def loses_tails(self) -> bool:
        return Fault.LOST_TAIL in self.kinds


TRAIN: Steps = (K.FORWARD_BACKWARD, K.OPTIM_STEP)
# What a client does next: mostly training, so that there is something to lose.
NEXT: list[Steps] = [
    *[TRAIN] * 6, (*TRAIN, K.SAMPLE), (K.FORWARD_BACKWARD, *TRAIN), (K.FORWARD_BACKWARD,), (K.OPTIM_STEP,),
    (K.SAMPLE,), (K.SAMPLE, K.SAMPLE, K.SAMPLE), (K.TRAINING_CHECKPOINT,), (K.TRAINING_CHECKPOINT, Act.RESUME),
    (Act.CANCEL,), (Act.CANCEL,), (Act.RETRY,), (Act.WAIT,), (Act.PAUSE,), (Act.PAUSE,),
]  # fmt: skip


def plan(seed: int) -> Plan:
    draw = Random(seed)
    # A few kinds of faults, each often, reach further than all of them, each seldom.
    few = frozenset(draw.sample(list(Fault), draw.randint(1, 6)))
    return Plan(
        seed=seed,
        workers=draw.choice([1, 2, 2, 2, 3]),
        apis=draw.choice([1, 2]),
        programs=tuple(_program(draw, f"c{number}") for number in range(draw.choice([1, 1, 1, 2, 2, 3]))),
        settings=_settings(draw),
        kinds=tuple(fault for fault in Fault if fault in few),
        rate=draw.choice([0.01, 0.03, 0.1, 0.2]),
        calm_after=draw.choice([2.0, 5.0, 10.0, 20.0]),
        engine_pace=draw.choice([1.0, 1.0, 20.0]),
        broker_pace=draw.choice([1.0, 1.0, 50.0]),
    )


def _program(draw: Random, name: str) -> Program:
    publishes = draw.random() < 0.2
    pool = [*NEXT, *([(K.WEIGHTS_SYNC,)] * 3 if publishes else [])]
    whats = [what for _ in range(draw.randint(1, 4)) for what in draw.choice(pool)]
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
