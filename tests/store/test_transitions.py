"""The table of legal moves: what may become what, and that an end is an end."""

import pytest

from domain.operation import OperationStatus
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
