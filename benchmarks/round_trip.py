"""What the smallest operation costs over REST: `python -m benchmarks.round_trip`.

Milliseconds from the POST to the result read with a waiting GET, on a tiny model through the whole local stack, one
operation at a time over one connection: what is measured is the way there and back.
"""

import argparse
import http.client
import time
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.report import quantile, write_report
from benchmarks.tiny_stack import tiny_stack
from testing.bodies import SESSIONS, Json, sample_body, step_body, train_body, whole

ROUND = (
    ("forward-backward", train_body([whole([1, 2, 3, 4])], "LOSS_TYPE_CROSS_ENTROPY")),
    ("optim-step", step_body()),
    ("sample", sample_body([1, 2, 3], max_tokens=1)),
)
SETTINGS = {"CELERITY_DEVICE": "cpu", "CELERITY_TORCH_THREADS": "1"}
WARM_UP = 20


class Client:
    """One kept connection, with as little of a client as can be."""

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc)

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        answer: Json = orjson.loads(self.send(method, path, None if body is None else orjson.dumps(body)))
        return answer

    def send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The bytes of the answer. Raises RuntimeError when it is not a 200."""
        self._http.request(method, path, body, {} if body is None else {"Content-Type": "application/json"})
        response = self._http.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")
        return answer

    def wait(self, path: str) -> Json:
        """The operation, read with waiting GETs until it has COMPLETED. Raises RuntimeError when it failed."""
        while (ended := self.call("GET", path))["status"].endswith(("PENDING", "RUNNING")):
            continue
        if not ended["status"].endswith("COMPLETED"):
            raise RuntimeError(str(ended))
        return ended

    def operation(self, session: str, kind: str, body: Json) -> tuple[float, float]:
        """Milliseconds until it was accepted, and until its result was read."""
        began = time.perf_counter()
        accepted = self.call("POST", f"{session}:{kind}", body)
        posted = time.perf_counter()
        self.wait(f"{session}/operations/{kind}/{accepted['operation_id']}")
        return 1000 * (posted - began), 1000 * (time.perf_counter() - began)


def measure(url: str, rounds: int) -> dict[str, list[tuple[float, float]]]:
    client = Client(url)
    session = f"{SESSIONS}/{client.call('POST', SESSIONS, {'base_model': 'tiny'})['session_id']}"
    taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind, _ in ROUND}
    for number in range(WARM_UP + rounds):
        for kind, body in ROUND:
            times = client.operation(session, kind, body)
            if number >= WARM_UP:
                taken[kind].append(times)
    return taken


def summary(taken: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """Per kind, in milliseconds."""
    return {
        kind: {
            "accepted_median": median(posted for posted, _ in times),
            "median": median(ended for _, ended in times),
            "p90": quantile([ended for _, ended in times], 0.9),
            "p99": quantile([ended for _, ended in times], 0.99),
        }
        for kind, times in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.round_trip", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tiny_stack(SETTINGS) as stack:
        result = summary(measure(stack.url, options.rounds))
    for kind, row in result.items():
        print(
            f"{kind:17} accepted {row['accepted_median']:5.1f} ms; result read, median {row['median']:5.1f} ms, "
            f"p90 {row['p90']:5.1f}, p99 {row['p99']:5.1f}"
        )
    write_report("round_trip", {"rounds": options.rounds, "milliseconds": result})


if __name__ == "__main__":
    main()
