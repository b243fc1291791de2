"""What bodies cost that were made to cost much: `python -m benchmarks.heavy_bodies`.

Each is posted to the API of a whole local stack: seconds until the answer, the longest that a /healthz took meanwhile,
and how much the memory of the API processes ever grew, over the body's size.
"""

import http.client
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import psutil

from benchmarks.instant_worker import instant_worker
from benchmarks.report import write_report
from benchmarks.round_trip import Client
from testing.bodies import SESSIONS, Json, prompt, whole

MEGABYTE = 10**6
VOCABULARY = 49_152
CHUNK = b'{"encoded_text":{"tokens":[1]}}'
UNITS = {
    "unknown fields": (b'{"a":[1]}', 210),
    "samples of one token": (orjson.dumps(whole([1])), 210),
    "chunks of one token": (orjson.dumps({**whole([1]), "model_input": {"chunks": [orjson.loads(CHUNK)] * 4000}}), 7.5),
    "the same, within the limits": (
        orjson.dumps({**whole([1]), "model_input": {"chunks": [orjson.loads(CHUNK)] * 4000}}),
        4.0,
    ),
    "tokens of one digit": (orjson.dumps({**whole([1]), "model_input": prompt([1] * 8000)}), 60),
    "nested lists": (b"[[[[1]]]]", 210),
}


def body_of(unit: bytes, megabytes: float) -> bytes:
    repeats = int(megabytes * MEGABYTE) // (len(unit) + 1)
    return b'{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[' + b",".join([unit] * repeats) + b"]}"


@contextmanager
def health_watched(url: str) -> Iterator[list[float]]:
    """Seconds that each GET of /healthz took, one after the other, as long as the block runs."""
    seconds: list[float] = []
    is_over = threading.Event()

    def watch() -> None:
        client = Client(url)
        while not is_over.wait(0.01):
            began = time.perf_counter()
            client.send("GET", "/healthz")
            seconds.append(time.perf_counter() - began)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seconds
    finally:
        is_over.set()
        thread.join()


def peak_bytes() -> int:
    """The most memory that any API process below this one has had."""
    pids = [each.pid for each in psutil.Process().children(recursive=True) if "gunicorn" in " ".join(each.cmdline())]
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return max(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def post(url: str, path: str, body: bytes) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def measure(name: str) -> Json:
    """On a stack of its own, whose memory is not that of an earlier body."""
    with (
        tempfile.TemporaryDirectory(prefix="celerity-heavy-") as folder,
        instant_worker(Path(folder), VOCABULARY) as worker,
    ):
        path, body, before = f"{SESSIONS}/{worker.session()}:forward-backward", body_of(*UNITS[name]), peak_bytes()
        with health_watched(worker.url) as health:
            began = time.perf_counter()
            status = post(worker.url, path, body)
            seconds = time.perf_counter() - began
        grown = (peak_bytes() - before) / len(body)
    return {"megabytes": len(body) / MEGABYTE, "status": status, "s": seconds, "health": max(health), "grown": grown}


def main() -> None:
    result = {name: measure(name) for name in UNITS}
    for name, row in result.items():
        print(
            f"{name:28} {row['megabytes']:6.1f} MB: {row['status']} in {row['s']:.2f} s, /healthz at most "
            f"{row['health']:.2f} s, {row['grown']:.1f} times its size in memory"
        )
    write_report("heavy_bodies", {"bodies": result})


if __name__ == "__main__":
    main()
