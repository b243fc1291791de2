"""`make load`: many clients at once on a tiny model. No request may fail and no operation may be lost.

Each client has a session of its own and goes round: forward-backward, optim-step, sample, each waited for.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.tiny_stack import tiny_stack
from celerity_client import ApiError, AsyncClient, AsyncOperation, AsyncSession, OperationFailedError, example

Submit = Callable[[AsyncSession], Awaitable[AsyncOperation[Any]]]
ROUND: dict[str, Submit] = {
    "forward-backward": lambda session: session.cross_entropy([example([1, 2, 3, 4], [1, 1, 1, 1])]),
    "optim-step": lambda session: session.optim_step(),
    "sample": lambda session: session.sample([1, 2, 3], max_tokens=4),
}
SETTINGS = {"CELERITY_DEVICE": "cpu", "CELERITY_RESIDENT_SESSIONS": "256"}


@dataclass
class Tally:
    """Seconds from POST to the result read, by kind; what was accepted, and what ended well."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    accepted: int = 0
    completed: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return self.accepted == self.completed > 0 and not self.errors

    def __str__(self) -> str:
        lines = [f"accepted {self.accepted}, completed {self.completed}, errors {len(self.errors)} {self.errors[:3]}"]
        for kind, seconds in self.seconds.items():
            times = sorted(seconds)
            at = ", ".join(
                f"p{share} {1000 * times[share * (len(times) - 1) // 100]:.0f}" for share in (50, 90, 99, 100)
            )
            lines.append(f"{kind:16} {len(times):6} operations, ms from POST to result: {at}")
        return "\n".join(lines)


async def client(server: AsyncClient, until: float, tally: Tally) -> None:
    try:
        session = await server.create_session("tiny")
        while time.monotonic() < until:
            for kind, submit in ROUND.items():
                began = time.monotonic()
                operation = await submit(session)
                tally.accepted += 1
                await operation.result()
                tally.completed += 1
                tally.seconds.setdefault(kind, []).append(time.monotonic() - began)
    except (ApiError, OperationFailedError) as error:
        tally.errors.append(f"{type(error).__name__}: {error}")


async def load(url: str, clients: int, seconds: float) -> Tally:
    tally, until = Tally(), time.monotonic() + seconds
    # Nothing is repeated: what the server refuses is an error.
    async with AsyncClient(url, retry_seconds=0) as server:
        await asyncio.gather(*(client(server, until, tally) for _ in range(clients)))
    return tally


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.load", description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tiny_stack(SETTINGS) as stack:
        tally = asyncio.run(load(stack.url, options.clients, options.seconds))
    print(f"{options.clients} clients for {options.seconds:.0f} s on one worker")
    print(tally)
    return 0 if tally.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
