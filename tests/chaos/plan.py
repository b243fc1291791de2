"""What a client of a trial does: one session after the other, each a list of actions, all from a seed."""

import random
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec

from domain.checkpoint import CheckpointRequest
from domain.forward_backward import Aggregation, CrossEntropy
from domain.operation import OperationKind
from domain.session import Dialect
from domain.weights_sync import WeightsSyncRequest
from tests.chaos import requests

SESSION_LENGTH = 80
CROSS_ENTROPY = {
    Dialect.NATIVE: CrossEntropy(),
    Dialect.TOGETHER: CrossEntropy(aggregation=Aggregation.SUM),
}
CHECKPOINTS = (OperationKind.TRAINING_CHECKPOINT, OperationKind.INFERENCE_CHECKPOINT)


class Round(NamedTuple):
    """The actions up to the next round are sent without waiting for anything."""


class Operation(NamedTuple):
    """Where it `uploads`, its body goes apart, ahead of it."""

    kind: OperationKind
    request: msgspec.Struct
    uploads: bool = False


class Cancel(NamedTuple):
    """Of the session's operation with this number, which may have begun or ended by then."""

    number: int


class Log(NamedTuple):
    name: str
    step: int
    value: float


class Stop(NamedTuple):
    """Of the session, or of all that it is attached to: what is sent after it is refused."""

    with_resources: bool


Action = Round | Operation | Cancel | Log | Stop


@dataclass(frozen=True)
class SessionPlan:
    """The next session goes on from the training checkpoint that is operation `origin`; after that the checkpoints of
    the operations `deleted` are deleted."""

    dialect: Dialect
    actions: list[Action]
    origin: int
    deleted: frozenset[int]

    @cached_property
    def operations(self) -> list[Operation]:
        return [action for action in self.actions if isinstance(action, Operation)]


def plan(seed: int, length: int) -> list[SessionPlan]:
    """At least two sessions, of either dialect in turn, with `length` operations together, or a few more."""
    rng = random.Random(seed)
    count = max(2, round(length / SESSION_LENGTH))
    dialects = rng.sample(list(Dialect), 2)
    return [_session(rng, dialects[number % 2], -(-length // count)) for number in range(count)]


def _session(rng: random.Random, dialect: Dialect, length: int) -> SessionPlan:
    """Rounds, with the origin somewhere in the second half, so that what follows it must not show in it; some are
    stopped in the middle of their last round."""
    actions: list[Action] = []
    count, origin = 0, None
    while count < length:
        operations = _round(rng, dialect)
        place = None
        if origin is None and count + len(operations) >= length // 2:
            place = rng.randint(0, len(operations))
            operations.insert(place, Operation(OperationKind.TRAINING_CHECKPOINT, CheckpointRequest()))
            origin = count + place
        actions += [Round(), *operations]
        if dialect is Dialect.NATIVE:
            actions += _cancels(rng, count, len(operations), place) + _logs(rng, len(actions))
        count += len(operations)
    assert origin is not None
    if rng.random() < 0.5:
        actions += [Round(), *(last := _round(rng, dialect))]
        actions.insert(rng.randint(len(actions) - len(last), len(actions) - 1), Stop(with_resources=rng.random() < 0.5))
    saved = [
        number
        for number, action in enumerate(action for action in actions if isinstance(action, Operation))
        if action.kind in CHECKPOINTS
    ]
    return SessionPlan(dialect, actions, origin, frozenset(number for number in saved if rng.random() < 0.4))


def _round(rng: random.Random, dialect: Dialect) -> list[Operation]:
    """One to three forward-backwards and a step, then samples; now and then a checkpoint, also between the two."""
    operations = [_training(rng, dialect) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.1:
        operations.append(Operation(OperationKind.FORWARD_BACKWARD, requests.non_finite_training(rng)))
    clip = rng.choice([0.0, 1.0]) if dialect is Dialect.TOGETHER else 0.0
    operations.append(Operation(OperationKind.OPTIM_STEP, requests.step(rng, clip)))
    if dialect is Dialect.TOGETHER and rng.random() < 0.7:
        publish = WeightsSyncRequest(in_background=rng.random() < 0.4)
        operations.insert(rng.randint(1, len(operations)), Operation(OperationKind.WEIGHTS_SYNC, publish))
    operations += [_sample(rng, dialect) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.4:
        saved = Operation(rng.choice(CHECKPOINTS), CheckpointRequest())
        operations.insert(rng.randint(1, len(operations)), saved)
    return operations


def _training(rng: random.Random, dialect: Dialect) -> Operation:
    loss = requests.loss(rng, CROSS_ENTROPY[dialect])
    if dialect is Dialect.NATIVE:
        return Operation(OperationKind.FORWARD_BACKWARD, requests.training(rng, loss))
    uploads = rng.random() < 0.3
    if rng.random() < 0.2:
        return Operation(OperationKind.CUSTOM_FORWARD_BACKWARD, requests.custom_training(rng), uploads)
    training = requests.training(rng, loss, forward_only=rng.random() < 0.2)
    return Operation(OperationKind.FORWARD_BACKWARD, training, uploads)


def _sample(rng: random.Random, dialect: Dialect) -> Operation:
    if dialect is Dialect.NATIVE:
        return Operation(OperationKind.SAMPLE, requests.sampling(rng))
    return Operation(OperationKind.SAMPLE, requests.sampling(rng, rng.randint(1, 4)), rng.random() < 0.3)


def _cancels(rng: random.Random, first: int, count: int, origin: int | None) -> list[Action]:
    """Of some operations of a round that has just been sent."""
    places = [place for place in range(count) if place != origin and rng.random() < 0.15]
    return [Cancel(first + place) for place in places]


def _logs(rng: random.Random, step: int) -> list[Action]:
    return [Log(rng.choice(["reward", "length"]), step, rng.random()) for _ in range(rng.randint(0, 2))]
