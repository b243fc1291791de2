"""The stack's own duties, with small commands in the place of the real services."""

import io
import re
import signal

import pytest

from stack.stack import Stack, StackError
from tests.stack.ready import ready_server
from tests.stack.small import service
from tests.waiting import eventually


def test_the_api_of_this_host_is_not_looked_for_behind_a_proxy(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert not stack.is_ready()
    with ready_server(int(stack.plan.bind.rpartition(":")[2])):
        assert stack.is_ready()


def test_services_end_in_the_opposite_order(stack: Stack, output: io.StringIO) -> None:
    for name in ("first", "second", "third"):
        stack.run(service(name, "import time; time.sleep(600)"))
    stack.stop()
    ended = re.findall(r"(\w+) ended,", output.getvalue())
    assert ended == ["third", "second", "first"]


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(7)", 7), ("", 1)])
def test_a_service_that_ends_by_itself_breaks_the_stack(stack: Stack, code: str, expected: int) -> None:
    stack.run(service("child", code))
    eventually(lambda: stack.processes["child"].poll() is not None)
    with pytest.raises(StackError, match="child ended unexpectedly") as error:
        stack.check()
    assert error.value.exit_code == expected


def test_a_stack_that_is_not_ready_in_time_says_so(stack: Stack) -> None:
    stack.run(service("child", "import time; time.sleep(600)"))
    with pytest.raises(StackError, match="the stack did not get ready in time"):
        stack.wait_ready(seconds=0.1)


def test_a_killed_service_can_be_run_again(stack: Stack) -> None:
    stack.run(service("child", "import time; time.sleep(600)"))
    process = stack.processes["child"]
    process.kill()
    assert process.poll() == 128 + signal.SIGKILL
    stack.run(process.service)
    stack.check()
    assert stack.processes["child"].pid != process.pid


def test_a_hastened_stop_waits_for_nobody(stack: Stack, output: io.StringIO) -> None:
    stack.run(
        service(
            "child", "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
        )
    )
    eventually(lambda: " up\n" in output.getvalue())
    stack.hasten()
    stack.stop()
    assert "child ended, exit code 137" in output.getvalue()
