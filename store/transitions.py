"""The states of an operation and the legal moves between them. Pure; the scripts are given this table.

They are given the session statuses and the operation kinds by their properties too.

A client sees WAITING (behind others of its session) and READY (its turn, a worker has been told)
both as PENDING.
"""

from collections.abc import Iterable
from enum import StrEnum

from domain.kinds import KINDS
from domain.operation import OperationStatus
from domain.session import SessionStatus


class OperationState(StrEnum):
    WAITING = "WAITING"
    READY = "READY"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"

    @property
    def status(self) -> OperationStatus:
        """What a client is told."""
        pending = self in (OperationState.WAITING, OperationState.READY)
        return OperationStatus.PENDING if pending else OperationStatus(self.value)


class Move(StrEnum):
    """RELEASE: its turn has come. CLAIM: a worker begins. COMPLETE, FAIL: its worker ends it.
    ABANDON: it ends without having begun. REQUEUE: its worker is gone, and another runs it again."""

    RELEASE = "release"
    CLAIM = "claim"
    COMPLETE = "complete"
    FAIL = "fail"
    ABANDON = "abandon"
    REQUEUE = "requeue"


_S = OperationState

MOVES: dict[Move, tuple[frozenset[OperationState], OperationState]] = {
    Move.RELEASE: (frozenset({_S.WAITING}), _S.READY),
    Move.CLAIM: (frozenset({_S.READY}), _S.RUNNING),
    Move.COMPLETE: (frozenset({_S.RUNNING}), _S.COMPLETED),
    Move.FAIL: (frozenset({_S.RUNNING}), _S.FAILED),
    Move.ABANDON: (frozenset({_S.WAITING, _S.READY}), _S.FAILED),
    Move.REQUEUE: (frozenset({_S.RUNNING}), _S.READY),
}


def lua_table() -> str:
    """MOVES, the session statuses and the operation kinds for the scripts."""
    return _moves() + _statuses() + _kinds()


def _moves() -> str:
    """`moves.claim.from[state]`, `moves.claim.to`."""
    lines = []
    for move, (before, after) in MOVES.items():
        states = ", ".join(f"{state} = true" for state in sorted(before))
        lines.append(f"{move} = {{from = {{{states}}}, to = '{after}'}}")
    return "local moves = {\n  " + ",\n  ".join(lines) + "\n}\n"


def _statuses() -> str:
    """Sets of session statuses: `is_active[status]`, `is_ended[status]`, and `statuses`, the list of all."""
    active = _set(status for status in SessionStatus if status.is_active)
    ended = _set(status for status in SessionStatus if status.is_ended)
    every = ", ".join(f"'{status}'" for status in SessionStatus)
    return f"local is_active, is_ended = {active}, {ended}\nlocal statuses = {{{every}}}\n"


def _kinds() -> str:
    """Sets of operation kinds: `only_reads[kind]`, `is_public[kind]`."""
    reading = _set(kind for kind, spec in KINDS.items() if spec.only_reads)
    public = _set(kind for kind in KINDS if kind.is_public)
    return f"local only_reads, is_public = {reading}, {public}\n"


def _set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f"['{name}'] = true" for name in names) + "}"
