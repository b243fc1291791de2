"""The table of legal moves: what may become what, and that an end is an end."""

import pytest

from domain.operation import OperationStatus
from domain.session import SessionStatus
from store.transitions import MOVES, Move, OperationState

S = OperationState


@pytest.mark.parametrize(
    ("move", "before", "after"),
    [
        (Move.RELEASE, {S.WAITING}, S.READY),
        (Move.CLAIM, {S.READY}, S.RUNNING),
        (Move.COMPLETE, {S.RUNNING}, S.COMPLETED),
        (Move.FAIL, {S.RUNNING}, S.FAILED),
        (Move.ABANDON, {S.WAITING, S.READY}, S.FAILED),
        (Move.REQUEUE, {S.RUNNING}, S.READY),
    ],
)
def test_each_move_has_its_states(move: Move, before: set[OperationState], after: OperationState) -> None:
    assert MOVES[move] == (frozenset(before), after)


def test_nothing_leaves_an_end() -> None:
    assert all(not {S.COMPLETED, S.FAILED} & before for before, _ in MOVES.values())


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (S.WAITING, OperationStatus.PENDING),
        (S.READY, OperationStatus.PENDING),
        (S.RUNNING, OperationStatus.RUNNING),
        (S.COMPLETED, OperationStatus.COMPLETED),
        (S.FAILED, OperationStatus.FAILED),
    ],
)
def test_what_a_client_is_told(state: OperationState, status: OperationStatus) -> None:
    assert state.status is status


@pytest.mark.parametrize(
    ("status", "is_active", "is_changing", "is_ended"),
    [
        ("CREATING", True, True, False),
        ("RUNNING", True, False, False),
        ("STOPPING", False, True, False),
        ("STOPPED", False, False, True),
        ("ERROR", False, False, True),
        ("EXPIRED", False, False, True),
    ],
)
def test_what_a_session_status_means(status: str, is_active: bool, is_changing: bool, is_ended: bool) -> None:
    found = SessionStatus(status)
    assert (found.is_active, found.is_changing, found.is_ended) == (is_active, is_changing, is_ended)
