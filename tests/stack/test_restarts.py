"""What `celerity up` starts again, when, and when it gives up: small commands stand for the real services."""

import io
import re
import signal

import pytest

from stack.log import Log
from stack.restarts import MOST_ENDS, STABLE_SECONDS, Restarts, Streak
from stack.stack import Stack, StackError
from tests.stack.small import SLEEP, service
from tests.waiting import eventually

KILLED = 128 + signal.SIGKILL


class Clock:
    """Stands where the supervisor's clock is, so that no pause is waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A stack of one service, and its supervisor."""

    def __init__(self, stack: Stack, output: io.StringIO, code: str) -> None:
        self.stack, self.clock = stack, Clock()
        stack.run(service("child", code))
        self._restarts = Restarts(stack, Log(output), self.clock)

    @property
    def is_running(self) -> bool:
        return self.stack.processes["child"].poll() is None

    def look_after(self, seconds: float) -> bool:
        """Whether it runs once the supervisor has looked, so much later."""
        self.clock.now += seconds
        self._restarts.look()
        return self.is_running

    def kill(self) -> None:
        self.stack.processes["child"].kill()

    def wait_for_end(self) -> None:
        eventually(lambda: not self.is_running)


def test_what_is_killed_is_started_again_each_time_after_ever_longer_pauses(stack: Stack, output: io.StringIO) -> None:
    watched = Watched(stack, output, SLEEP)
    pauses = (1, 2, 4, 8, 16, 30, 30)
    for pause in pauses:
        watched.kill()
        assert not watched.look_after(0)
        assert not watched.look_after(pause / 2)
        assert watched.look_after(pause / 2)
    told = re.findall(r"stack .* child ended with exit code 137; starting it again in (\d+) s\n", output.getvalue())
    assert tuple(map(int, told)) == pauses


def test_what_was_well_for_long_is_started_again_soon(stack: Stack, output: io.StringIO) -> None:
    watched = Watched(stack, output, SLEEP)
    for pause in (1, 2):
        watched.kill()
        assert not watched.look_after(0) and watched.look_after(pause)
    watched.clock.now += STABLE_SECONDS
    watched.kill()
    assert not watched.look_after(0) and watched.look_after(1)


def test_what_ends_by_itself_each_time_ends_the_stack_with_a_sentence_and_its_code(
    stack: Stack, output: io.StringIO
) -> None:
    watched = Watched(stack, output, "raise SystemExit(7)")
    for _ in range(MOST_ENDS - 1):
        watched.wait_for_end()
        watched.look_after(0)
        watched.look_after(30)
    watched.wait_for_end()
    with pytest.raises(StackError, match="child ended with exit code 7, 5 times in a row") as given_up:
        watched.look_after(0)
    assert given_up.value.exit_code == 7


def test_each_service_has_its_own_row(stack: Stack, output: io.StringIO) -> None:
    stack.run(service("other", SLEEP))
    other = stack.processes["other"].pid
    watched = Watched(stack, output, SLEEP)
    watched.kill()
    assert not watched.look_after(0) and watched.look_after(1)
    assert stack.processes["other"].pid == other and stack.processes["other"].poll() is None


@pytest.mark.parametrize(
    ("codes", "is_crash_loop"),
    [
        ([1] * 4, False),
        ([1] * 5, True),
        ([0] * 5, True),
        ([1, 1, 1, 1, 2, 1], False),
        ([2, 1, 1, 1, 1, 1], True),
        ([1, 1, 1, 1, KILLED, 1], False),
        ([KILLED] * 20, False),
    ],
)
def test_only_ends_of_its_own_choice_with_one_code_in_a_row_are_hopeless(codes: list[int], is_crash_loop: bool) -> None:
    streak = Streak()
    for code in codes:
        streak.add(code)
    assert streak.is_crash_loop == is_crash_loop
