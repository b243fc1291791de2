"""How long an operation may run, by a clock that stands still."""

import threading
from concurrent.futures import Future

import pytest

from domain.operation import ErrorCode, OperationFailedError, OperationKind
from workers.deadline import Deadline, RestoreDeadline
from workers.engine.commit import commit

SAMPLE = OperationKind.SAMPLE


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_passes_when_its_seconds_have_passed_and_not_before() -> None:
    clock = Clock()
    deadline, never = (Deadline(SAMPLE, seconds, clock) for seconds in (2.0, None))
    clock.now += 1.5
    deadline.check()
    assert deadline.remaining == 0.5
    clock.now += 0.5
    with pytest.raises(OperationFailedError):
        deadline.check()
    clock.now += 1e9
    assert (deadline.remaining, never.remaining) == (0.0, None)
    never.check()


@pytest.mark.parametrize(
    ("kind", "happened", "setting"),
    [
        (SAMPLE, "sample ran for longer than its limit of 2.5 s", "CELERITY_SAMPLE_TIMEOUT"),
        (OperationKind.CUSTOM_FORWARD_BACKWARD, "limit of 2.5 s and was stopped", "CELERITY_FORWARD_BACKWARD_TIMEOUT"),
        (OperationKind.INFERENCE_CHECKPOINT, "inference-checkpoint ran for longer", "CELERITY_CHECKPOINT_TIMEOUT"),
        (OperationKind.CREATE_SESSION, "not in its worker's memory within 2.5 s", "CELERITY_CREATE_SESSION_TIMEOUT"),
    ],
)
def test_its_error_says_what_happened_and_what_to_do(kind: OperationKind, happened: str, setting: str) -> None:
    clock = Clock()
    deadline = Deadline(kind, 2.5, clock)
    clock.now += 3
    with pytest.raises(OperationFailedError) as raised:
        deadline.check()
    assert raised.value.error.code is ErrorCode.TIMEOUT
    assert happened in str(raised.value)
    assert str(raised.value).endswith(f"or allow more time: timeout_seconds, up to the server's {setting}.")


def test_a_session_that_does_not_come_back_in_time_is_no_matter_of_the_request() -> None:
    clock = Clock()
    deadline = RestoreDeadline(2.5, clock)
    clock.now += 3
    with pytest.raises(OperationFailedError, match="not back in its worker's memory") as raised:
        deadline.check()
    assert raised.value.error.code is ErrorCode.TIMEOUT
    assert "CELERITY_CREATE_SESSION_TIMEOUT" in str(raised.value)
    assert "timeout_seconds" not in str(raised.value)


def test_a_lock_is_waited_for_until_then_and_is_free_afterwards() -> None:
    lock = threading.Lock()
    with lock, pytest.raises(OperationFailedError), Deadline(SAMPLE, 0.01).holding(lock):
        pytest.fail("it is taken")
    for seconds in (60.0, None):
        with Deadline(SAMPLE, seconds).holding(lock):
            assert lock.locked()
        assert not lock.locked()


def passed() -> Deadline:
    clock = Clock()
    deadline = Deadline(SAMPLE, 1.0, clock)
    clock.now += 2
    return deadline


def test_a_call_that_is_at_work_when_the_time_is_up_is_given_up() -> None:
    future: Future[int] = Future()
    with pytest.raises(OperationFailedError):
        passed().answer(future)
    assert future.cancelled()
    assert not commit(future), "and stays so"
    assert not commit(future)


def test_a_call_that_is_committed_or_has_ended_is_answered_however_late() -> None:
    ended, failed, committed = Future[int](), Future[int](), Future[int]()
    ended.set_result(1)
    failed.set_exception(TimeoutError("of its own"))
    assert commit(committed)
    committed.set_result(2)
    assert (passed().answer(ended), passed().answer(committed)) == (1, 2)
    with pytest.raises(TimeoutError, match="of its own"):
        passed().answer(failed)


def test_chunks_come_as_long_as_there_is_time() -> None:
    clock = Clock()
    chunks = Deadline(SAMPLE, 1.0, clock).within(iter([b"a", b"b", b"c"]))
    assert next(chunks) == b"a"
    clock.now += 0.6
    assert next(chunks) == b"b"
    clock.now += 0.6
    with pytest.raises(OperationFailedError):
        next(chunks)


def test_a_pause_takes_none_of_the_time() -> None:
    clock = Clock()
    deadline = Deadline(SAMPLE, 1.0, clock)
    with deadline.paused():
        clock.now += 5.0
    assert deadline.remaining == 1.0
