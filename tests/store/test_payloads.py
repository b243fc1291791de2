"""Small payloads stay in Redis, large ones become objects, and neither outlives its use."""

from pathlib import Path

import numpy as np
import pytest

from contract.operation import OperationKind
from contract.sample import SampleRequest, SampleResult, SamplingParams, Sequence, StopReason
from settings import Settings
from store.errors import TooManyWaitingError
from tests.store.conftest import WORKER, Bench

LARGE = np.arange(1000, dtype=np.int32)
SMALL = np.arange(3, dtype=np.int32)


def request(prompt: np.ndarray) -> SampleRequest:
    return SampleRequest(prompts=(prompt,), num_samples=1, params=SamplingParams(), seed=1)


def result(tokens: np.ndarray) -> SampleResult:
    return SampleResult((Sequence(tokens, -tokens.astype(np.float32), StopReason.STOP),))


def objects(settings: Settings) -> list[Path]:
    return [path for path in (settings.data_dir / "objects").rglob("*") if path.is_file()]


def test_a_small_request_and_result_make_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    bench.run(operation.id, result(SMALL))
    ended = bench.store.operations.get(session.id, operation.id)
    kept = bench.store.operations.result(ended, SampleResult).sequences[0]
    assert kept.tokens.tolist() == [0, 1, 2]
    assert kept.logprobs.tolist() == [0.0, -1.0, -2.0]
    assert objects(settings) == []


def test_a_large_result_is_an_object_and_the_request_goes_when_it_has_been_used(
    bench: Bench, settings: Settings
) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    assert len(objects(settings)) == 1
    bench.run(operation.id, result(LARGE))
    bench.store.janitor.delete_garbage()
    assert [path.parts[-3] for path in objects(settings)] == ["results"]
    ended = bench.store.operations.get(session.id, operation.id)
    assert np.array_equal(bench.store.operations.result(ended, SampleResult).sequences[0].tokens, LARGE)


def test_a_refused_result_leaves_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    claim = bench.claim(operation.id)
    bench.store.sessions.move(session.id, WORKER, "worker-2")
    assert not bench.store.claims.finish(claim, result(LARGE))
    assert objects(settings) == []


def test_a_refused_request_leaves_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    for _ in range(settings.max_waiting_operations):
        bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    with pytest.raises(TooManyWaitingError):
        bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    assert objects(settings) == []


def test_a_cancelled_request_leaves_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    bench.store.operations.cancel(session.id, operation.id)
    bench.store.janitor.delete_garbage()
    assert objects(settings) == []
