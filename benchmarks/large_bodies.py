"""What large bodies cost beside parsing them: `python -m benchmarks.large_bodies`.

A forward-backward of 1,000,000 tokens accepted by the whole local stack, against orjson parsing the same body in this
process; and the result of a sample of 64 x 4,096 tokens, read.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson

from benchmarks.instant_worker import InstantWorker, instant_worker
from benchmarks.report import write_report
from benchmarks.round_trip import Client
from domain.sample import SampleResult, Sequence, StopReason
from testing.bodies import SESSIONS, Json, prompt, sample_body, train_body

SAMPLES, TOKENS = 250, 4_000
SEQUENCES, NEW_TOKENS = 64, 4_096
ROUNDS = 9
VOCABULARY = 49_152


def milliseconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def training_sample(rng: np.random.Generator, loss: str) -> Json:
    inputs: Json = {"loss_mask": {"data": [1] * TOKENS}}
    if loss == "LOSS_TYPE_GRPO":
        inputs["grpo_inputs"] = {
            "advantages": {"data": rng.standard_normal(TOKENS).tolist()},
            "generator_logprobs": {"data": (-rng.random(TOKENS)).tolist()},
        }
    return {"model_input": prompt(rng.integers(0, VOCABULARY, TOKENS).tolist()), "loss_inputs": inputs}


def accepting(client: Client, session: str, loss: str) -> Json:
    """Medians of parsing the body here and of the whole POST, in milliseconds."""
    rng = np.random.default_rng(0)
    body = train_body([training_sample(rng, loss) for _ in range(SAMPLES)], loss)
    raw = orjson.dumps(body)
    parsed, posted = [], []
    for _ in range(ROUNDS):
        parsed.append(milliseconds(lambda: orjson.loads(raw)))
        posted.append(milliseconds(lambda: client.send("POST", f"{session}:forward-backward", raw)))
    times = {"orjson": median(parsed), "accepted": median(posted)}
    return {"megabytes": len(raw) / 1e6, **times, "ratio": times["accepted"] / times["orjson"]}


def reading(client: Client, session: str, worker: InstantWorker) -> Json:
    """The median of reading the result, in milliseconds."""
    rng = np.random.default_rng(0)
    operation_id = client.call("POST", f"{session}:sample", sample_body([1, 2, 3]))["operation_id"]
    sequences = tuple(
        Sequence(
            rng.integers(0, VOCABULARY, NEW_TOKENS).astype(np.int32),
            -rng.random(NEW_TOKENS).astype(np.float32),
            StopReason.LENGTH,
        )
        for _ in range(SEQUENCES)
    )
    worker.finish(operation_id, SampleResult(sequences))
    path = f"{session}/operations/sample/{operation_id}"
    size = len(client.send("GET", path))
    return {"megabytes": size / 1e6, "read": median(milliseconds(lambda: client.send("GET", path)) for _ in range(9))}


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="celerity-large-") as name,
        instant_worker(Path(name), VOCABULARY) as worker,
    ):
        client = Client(worker.url)
        # The sample comes first: behind training operations it would have to wait for them.
        result = {"sample": reading(client, f"{SESSIONS}/{worker.session()}", worker)}
        for loss in ("LOSS_TYPE_CROSS_ENTROPY", "LOSS_TYPE_GRPO"):
            result[loss] = accepting(client, f"{SESSIONS}/{worker.session()}", loss)
    sample = result["sample"]
    print(f"sample of {SEQUENCES} x {NEW_TOKENS} ({sample['megabytes']:.1f} MB) read in {sample['read']:.0f} ms")
    for loss in ("LOSS_TYPE_CROSS_ENTROPY", "LOSS_TYPE_GRPO"):
        row = result[loss]
        print(
            f"{SAMPLES * TOKENS:,} tokens, {loss} ({row['megabytes']:.1f} MB): accepted in {row['accepted']:.0f} ms, "
            f"{row['ratio']:.2f}x orjson's {row['orjson']:.0f} ms"
        )
    write_report("large_bodies", {"milliseconds": result})


if __name__ == "__main__":
    main()
