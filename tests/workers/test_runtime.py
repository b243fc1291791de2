"""What a worker says of itself, and how it leaves."""

import threading
from pathlib import Path

import msgspec
import pytest

from domain.codec import encode
from domain.operation import ErrorCode, OperationKind
from domain.optim_step import OptimStepRequest
from domain.session import LoraConfig, SessionSpec, SessionStatus
from store.refusals import RefusedError
from testing.tiny_model import make_tiny_model, reconfigured
from tests.engine.calls import packed, random_sample, sample_request
from tests.workers.conftest import Begin

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 4\n"


def test_it_announces_its_limits_what_it_measures_and_what_it_counts(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin(max_worker_sessions=7, reserved_bytes=11)
    session = harness.session()
    monkeypatch.setattr(harness.worker.engine, "free_bytes", lambda: 13)
    monkeypatch.setattr(harness.worker.engine, "total_bytes", lambda: 17)
    said = harness.worker.announcement()
    assert (said.capacity, said.reserved_bytes, said.free_bytes, said.total_bytes) == (7, 11, 13, 17)
    assert (said.resident, said.resident_bytes) == (1, session.spec.adapter_bytes)
    harness.store.sessions.stop(session.id)
    harness.deliver()
    assert (harness.worker.announcement().resident, harness.worker.announcement().resident_bytes) == (0, 0)


def test_what_it_has_copied_is_written_before_it_leaves(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness, done, leaves = begin(snapshot_steps=1), list[str](), threading.Event()
    session = harness.session()

    def save(*_: object) -> bool:
        leaves.wait(0.3)
        done.append("written")
        return True

    def leave(_: str) -> None:
        leaves.set()
        done.append("left")

    monkeypatch.setattr(harness.store.snapshots, "save", save)
    monkeypatch.setattr(harness.store.workers, "leave", leave)
    for kind, request in (
        (OperationKind.FORWARD_BACKWARD, packed([random_sample(0, 3)])),
        (OperationKind.OPTIM_STEP, OptimStepRequest()),
    ):
        harness.run(session, kind, request)
    harness.worker.close()
    assert done == ["written", "left"]


def test_one_that_drains_gives_its_sessions_away_first_and_ends_in_the_stated_time(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, done = begin(drain_seconds=25.0), list[object]()
    monkeypatch.setattr("time.sleep", lambda seconds: done.append((seconds, harness.store.workers.left())))
    monkeypatch.setattr("os._exit", done.append)
    harness.worker.drain()
    assert done == [(25.0, [harness.worker.worker_id]), 0]


def test_one_that_drains_while_redis_refuses_ends_in_the_stated_time_too(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, done = begin(drain_seconds=25.0), list[object]()

    def refused(_: str) -> None:
        raise RefusedError("too few replicas", status_code="NOREPLICAS")

    with monkeypatch.context() as refusing:
        refusing.setattr(harness.store.workers, "leave", refused)
        refusing.setattr("time.sleep", done.append)
        refusing.setattr("os._exit", done.append)
        harness.worker.drain()
    assert done == [25.0, 0]


def test_a_session_whose_base_model_cannot_be_loaded_ends_in_error_with_the_reason(begin: Begin) -> None:
    harness = begin()
    session = harness.session(base_model=msgspec.structs.replace(harness.card, name="nowhere"))
    ended = harness.store.sessions.get(session.id)
    assert ended.status is SessionStatus.ERROR
    assert "'nowhere' is not served here" in (ended.reason or "")


def test_a_model_that_turns_out_to_be_no_whole_one_is_refused_with_the_reason_and_announced_as_refused(
    begin: Begin, tmp_path: Path
) -> None:
    reconfigured(make_tiny_model(tmp_path / "models" / "lacking"), num_hidden_layers=3)
    harness = begin()
    served = {card.name: card for card in harness.worker.announcement().models}
    assert set(served) >= {"tiny", "lacking"} and "lacking" not in harness.worker.announcement().refused
    session = harness.store.sessions.create(
        SessionSpec(base_model=served["lacking"], lora=LoraConfig(), seed=1), [harness.worker.worker_id]
    )
    waiting = harness.store.operations.accept(session.id, OperationKind.SAMPLE, sample_request([[1]]))
    harness.deliver()
    ended = harness.store.sessions.get(session.id)
    sentence = "the base model 'lacking' is refused: its files lack tensors that config.json describes: model.layers.2."
    assert ended.status is SessionStatus.ERROR and (ended.reason or "").startswith(sentence)
    error = harness.store.operations.get(session.id, waiting.id).error
    assert error and error.code is ErrorCode.INVALID_INPUT and sentence in error.message
    said = harness.worker.announcement()
    assert "lacking" not in {card.name for card in said.models} and "model.layers.2." in said.refused["lacking"]
    assert harness.sample(harness.session())


def test_a_folder_of_broken_models_keeps_no_worker_from_serving_the_others(begin: Begin, tmp_path: Path) -> None:
    models = tmp_path / "models"
    (make_tiny_model(models / "deep") / "config.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    (make_tiny_model(models / "pointer") / "model.safetensors").write_text(POINTER)
    reconfigured(make_tiny_model(models / "endless"), num_hidden_layers=10**9)
    reconfigured(make_tiny_model(models / "huge"), vocab_size=10**25)
    reconfigured(make_tiny_model(models / "strange"), model_type="\ud800")
    harness = begin()
    said = harness.worker.announcement()
    assert set(said.refused) == {"deep", "pointer", "endless", "huge", "strange"}
    assert encode(said)
    assert harness.sample(harness.session())


def test_what_a_config_leaves_out_is_announced_as_transformers_has_it(begin: Begin, tmp_path: Path) -> None:
    reconfigured(make_tiny_model(tmp_path / "models" / "short"), max_position_embeddings=None)
    cards = {card.name: card for card in begin().worker.announcement().models}
    assert cards["short"].context_length == 2048
