"""Ctrl-C and SIGTERM: the first asks the stack to stop in order, the second does not wait for it."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

# Under nohup the stack is meant to outlive its terminal.
IS_NOHUP = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
SIGNALS = (signal.SIGINT, signal.SIGTERM) if IS_NOHUP else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Raised in the main thread wherever it is, as KeyboardInterrupt is, so that every `finally` runs."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def raise_on_signals() -> None:
    """From now on the first signal raises StopRequested; later ones are ignored until `call_on_signals`."""

    def handle(number: int, _: FrameType | None) -> None:
        _handle_with(signal.SIG_IGN)
        raise StopRequested(number)

    _handle_with(handle)


@contextlib.contextmanager
def silent_interrupt() -> Iterator[None]:
    """Ctrl-C ends the process at once, without a traceback: for imports, which leave nothing to clean up."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.default_int_handler:  # where it is ignored it stays so
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)


def call_on_signals(action: Callable[[], None]) -> None:
    """From now on a signal calls `action`."""
    _handle_with(lambda *_: action())


def _handle_with(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)
