"""`make load`: many clients at once on a tiny model. No request may fail and no operation may be lost.

Each client has a session of its own and goes round: forward-backward, optim-step, sample, each waited for.
"""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass, field

import httpx

from benchmarks.tiny_stack import tiny_stack
from testing.bodies import SESSIONS, Json, sample_body, step_body, train_body, whole

ROUND = (
    ("forward-backward", train_body([whole([1, 2, 3, 4])], "LOSS_TYPE_CROSS_ENTROPY")),
    ("optim-step", step_body()),
    ("sample", sample_body([1, 2, 3], max_tokens=4)),
)
# As a client asks that expects to wait: 200 that ask every second are a load of another kind.
PATIENT = {"Prefer": "wait=20"}
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


async def client(http: httpx.AsyncClient, until: float, tally: Tally) -> None:
    try:
        created = await call(http, "POST", SESSIONS, {"base_model": "tiny"})
        session = f"{SESSIONS}/{created['session_id']}"
        while time.monotonic() < until:
            for kind, body in ROUND:
                await operation(http, session, kind, body, tally)
    except (httpx.TransportError, RuntimeError) as error:
        tally.errors.append(f"{type(error).__name__}: {error}")


async def operation(http: httpx.AsyncClient, session: str, kind: str, body: Json, tally: Tally) -> None:
    began = time.monotonic()
    accepted = await call(http, "POST", f"{session}:{kind}", body)
    tally.accepted += 1
    path = f"{session}/operations/{kind}/{accepted['operation_id']}"
    while (ended := await call(http, "GET", path))["status"].endswith(("PENDING", "RUNNING")):
        continue
    if not ended["status"].endswith("COMPLETED"):
        raise RuntimeError(str(ended))
    tally.completed += 1
    tally.seconds.setdefault(kind, []).append(time.monotonic() - began)


async def call(http: httpx.AsyncClient, method: str, path: str, body: Json | None = None) -> Json:
    response = await http.request(method, path, json=body, headers=PATIENT)
    if response.status_code != 200:
        raise RuntimeError(f"{response.status_code}: {response.text}")
    answer: Json = response.json()
    return answer


async def load(url: str, clients: int, seconds: float) -> Tally:
    tally, until = Tally(), time.monotonic() + seconds
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120.0, limits=limits) as http:
        await asyncio.gather(*(client(http, until, tally) for _ in range(clients)))
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
