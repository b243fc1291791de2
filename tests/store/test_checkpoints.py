"""A checkpoint is there whole or not at all, outlives its session, and goes with its objects."""

from collections.abc import Iterator

import msgspec
import pytest
from obstore.store import MemoryStore

from domain.api_key import ANONYMOUS
from domain.checkpoint import Checkpoint, CheckpointKind, CheckpointRequest, NewFile, Part
from domain.operation import ErrorCode, OperationFailedError, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.session import Session
from store.claims import Claim
from store.errors import CheckpointGoneError, NotFoundError, ObjectsAwayError
from store.objects import Objects
from store.snapshots import Kept
from store.store import Store
from tests.store.conftest import SPEC, WORKER, Bench, with_settings

TRAINING, INFERENCE = CheckpointKind.TRAINING, CheckpointKind.INFERENCE
KIND_OF = {TRAINING: OperationKind.TRAINING_CHECKPOINT, INFERENCE: OperationKind.INFERENCE_CHECKPOINT}
PARTS = {
    TRAINING: {Part.STATE: {"state": b"weights and moments"}},
    INFERENCE: {Part.ADAPTER: {"config": b"{}", "weights": b"AB"}, Part.MERGED: {"weights": b"W + AB"}},
}


def asked(bench: Bench, session: Session, kind: CheckpointKind = TRAINING) -> Claim:
    """The claim on a new operation that saves a checkpoint."""
    operation = bench.store.operations.accept(session.id, KIND_OF[kind], CheckpointRequest())
    bench.outbox.take()
    claim: Claim = bench.claim(operation.id)
    return claim


def written(bench: Bench, claim: Claim, kind: CheckpointKind = TRAINING, step: int = 3) -> Checkpoint:
    parts = {part: [NewFile.of(name, data) for name, data in files.items()] for part, files in PARTS[kind].items()}
    return bench.store.checkpoints.write(claim, bench.store.checkpoints.begin(claim), kind, step, parts)


def saved(bench: Bench, session: Session, kind: CheckpointKind = TRAINING) -> Checkpoint:
    claim = asked(bench, session, kind)
    assert bench.store.claims.finish(claim, written(bench, claim, kind))
    return bench.store.checkpoints.get(claim.operation_id, ANONYMOUS)


def written_after_it_was_collected(bench: Bench) -> tuple[Claim, str, Checkpoint]:
    """The claim of a late worker, the folder that it began, and what it wrote there when its attempt was given up."""
    late = asked(bench, bench.running_session())
    folder = bench.store.checkpoints.begin(late)
    bench.store.sessions.move(late.session_id, WORKER, "worker-2")
    bench.store.janitor.sweep()
    parts = {Part.STATE: [NewFile.of("state", b"weights and moments")]}
    return late, folder, bench.store.checkpoints.write(late, folder, TRAINING, 3, parts)


def objects(bench: Bench) -> list[str]:
    """The paths of all objects of checkpoints."""
    folder = bench.settings.data_dir / "objects"
    return sorted(str(path.relative_to(folder)) for path in folder.glob("checkpoints/**/*") if path.is_file())


def end(bench: Bench, session: Session) -> None:
    bench.outbox.take()
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])


@pytest.mark.parametrize("kind", CheckpointKind)
def test_it_appears_when_its_operation_ends_and_not_before(bench: Bench, kind: CheckpointKind) -> None:
    session = bench.running_session()
    claim = asked(bench, session, kind)
    checkpoint = written(bench, claim, kind)
    with pytest.raises(NotFoundError):
        bench.store.checkpoints.get(claim.operation_id, ANONYMOUS)
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == []
    bench.store.claims.finish(claim, checkpoint)
    kept = bench.store.checkpoints.get(claim.operation_id, ANONYMOUS)
    assert msgspec.structs.replace(kept, created_at=0.0) == checkpoint
    assert (kept.session_id, kept.kind, kept.step, kept.spec) == (session.id, kind, 3, SPEC)
    assert kept.created_at > session.created_at
    operation = bench.store.operations.get(session.id, claim.operation_id)
    assert bench.store.operations.result(operation, Checkpoint) == checkpoint
    named = [(part, file) for part, files in kept.files.items() for file in files]
    stored = {(part, file.name): bench.objects.get(kept.path(part, file)) for part, file in named}
    assert stored == {(part, name): data for part, files in PARTS[kind].items() for name, data in files.items()}
    assert kept.size == sum(len(data) for data in stored.values())


def test_it_runs_alone_and_in_its_turn(bench: Bench) -> None:
    session = bench.running_session()
    accept = bench.store.operations.accept
    sample = accept(session.id, OperationKind.SAMPLE, OptimStepRequest()).id
    save = accept(session.id, OperationKind.TRAINING_CHECKPOINT, CheckpointRequest()).id
    later = accept(session.id, OperationKind.SAMPLE, OptimStepRequest()).id
    assert bench.outbox.take() == [sample]
    bench.run(sample)
    assert bench.outbox.take() == [save]
    claim = bench.claim(save)
    assert claim is not None
    bench.store.claims.finish(claim, written(bench, claim))
    assert bench.outbox.take() == [later]


def test_lists_are_newest_first_by_page_by_session_and_by_kind(bench: Bench) -> None:
    one, two = bench.running_session(), bench.running_session()
    made = [saved(bench, one), saved(bench, two), saved(bench, one, INFERENCE), saved(bench, one)]
    listed = bench.store.checkpoints.list
    assert listed(ANONYMOUS, 20, 0) == made[::-1]
    assert listed(ANONYMOUS, 2, 1) == made[2:0:-1]
    assert listed(ANONYMOUS, 20, 0, session_id=two.id) == [made[1]]
    assert listed(ANONYMOUS, 20, 0, kind=INFERENCE) == [made[2]]
    assert listed(ANONYMOUS, 20, 0, session_id=one.id, kind=TRAINING) == [made[3], made[0]]
    assert listed(ANONYMOUS, 20, 0, session_id="unknown") == []


def test_a_checkpoint_is_its_owner_s_alone(bench: Bench) -> None:
    session = bench.running_session()
    checkpoint = saved(bench, session)
    assert bench.store.checkpoints.get(checkpoint.id, ANONYMOUS) == checkpoint
    assert bench.store.checkpoints.list("another", 20, 0) == []
    for theirs in (bench.store.checkpoints.get, bench.store.checkpoints.delete):
        with pytest.raises(NotFoundError):
            theirs(checkpoint.id, "another")
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == [checkpoint]


def test_a_lost_attempt_leaves_nothing_and_the_next_one_counts(bench: Bench) -> None:
    session = bench.running_session()
    late = asked(bench, session)
    checkpoint = written(bench, late)
    bench.store.janitor.sweep()
    assert objects(bench) == [checkpoint.state_path], "what is being written is left alone"
    bench.store.sessions.move(session.id, WORKER, "worker-2")
    claim = bench.claim(late.operation_id, "worker-2")
    assert bench.store.claims.finish(claim, written(bench, claim))
    assert not bench.store.claims.finish(late, checkpoint)
    bench.store.janitor.sweep()
    assert objects(bench) == [bench.store.checkpoints.get(claim.operation_id, ANONYMOUS).state_path]
    assert bench.redis.exists("celerity:saves") == 0


def test_what_a_lost_attempt_writes_after_it_was_collected_goes_too(bench: Bench) -> None:
    late, _, checkpoint = written_after_it_was_collected(bench)
    assert not bench.store.claims.finish(late, checkpoint)
    bench.store.janitor.sweep()
    assert objects(bench) == []


def test_what_a_late_worker_writes_and_dies_before_it_is_refused_goes_a_day_later(bench: Bench) -> None:
    late, folder, written_late = written_after_it_was_collected(bench)
    claim = bench.claim(late.operation_id, "worker-2")
    assert bench.store.claims.finish(claim, written(bench, claim))
    bench.redis.zincrby("celerity:collected", -86_000.0, folder)
    bench.store.janitor.sweep()
    assert written_late.state_path in objects(bench), "not yet"
    bench.redis.zincrby("celerity:collected", -401.0, folder)
    bench.store.janitor.sweep()
    assert objects(bench) == [bench.store.checkpoints.get(claim.operation_id, ANONYMOUS).state_path]
    assert bench.redis.exists("celerity:collected") == 0


def test_an_attempt_whose_worker_died_half_way_is_collected(bench: Bench) -> None:
    session = bench.running_session()
    claim = asked(bench, session)
    folder = bench.store.checkpoints.begin(claim)
    half = bench.settings.data_dir / "objects" / folder / "state" / "state#1"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"weig")
    bench.store.janitor.sweep()
    assert half.exists()
    bench.store.sessions.move(session.id, WORKER, "worker-2")
    bench.store.janitor.sweep()
    assert not half.parent.parent.exists()


def test_what_fails_while_it_is_made_leaves_no_file(bench: Bench) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"weig"
        raise RuntimeError("the device is gone")

    claim = asked(bench, bench.running_session())
    folder = bench.store.checkpoints.begin(claim)
    with pytest.raises(RuntimeError):
        bench.store.checkpoints.write(claim, folder, TRAINING, 3, {Part.STATE: [NewFile("state", 9, chunks())]})
    assert objects(bench) == []


def test_a_file_of_another_size_than_was_said_is_no_checkpoint(bench: Bench) -> None:
    claim = asked(bench, bench.running_session())
    folder = bench.store.checkpoints.begin(claim)
    with pytest.raises(AssertionError, match="not as large as it was said to be"):
        bench.store.checkpoints.write(claim, folder, TRAINING, 3, {Part.STATE: [NewFile("state", 9, [b"weig"])]})


def test_a_disk_with_too_little_room_refuses_before_anything_is_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint has 19 bytes: it leaves what is to be kept free, or one byte less than that."""
    claim, parts = asked(bench, bench.running_session()), {"state": b"weights and moments"}
    monkeypatch.setattr(bench.objects, "free_bytes", lambda: 1000)

    def write(floor: int) -> Checkpoint:
        files = [NewFile.of(name, data) for name, data in parts.items()]
        return with_settings(bench, disk_floor_bytes=floor).checkpoints.write(
            claim, "checkpoints/x/", TRAINING, 0, {Part.STATE: files}
        )

    with pytest.raises(OperationFailedError, match=r"19 bytes.*1000 free, of which 982 are kept free") as refused:
        write(floor=982)
    assert refused.value.error.code is ErrorCode.RESOURCE_EXHAUSTED
    assert objects(bench) == []
    assert write(floor=981).size == 19


def test_what_lies_elsewhere_asks_for_no_room_on_this_disk(bench: Bench) -> None:
    claim = asked(bench, bench.running_session())
    settings = msgspec.structs.replace(bench.settings, disk_floor_bytes=1 << 60)
    elsewhere = Store(bench.redis, Objects(MemoryStore()), bench.outbox, settings)  # type: ignore[arg-type]
    parts = {Part.STATE: [NewFile.of("state", b"weights and moments")]}
    assert elsewhere.checkpoints.write(claim, "x/", TRAINING, 0, parts).size == 19


def test_deleting_it_deletes_its_objects(bench: Bench) -> None:
    session = bench.running_session()
    deleted, kept = saved(bench, session, INFERENCE), saved(bench, session)
    bench.store.checkpoints.delete(deleted.id, ANONYMOUS)
    for call in (bench.store.checkpoints.get, bench.store.checkpoints.delete):
        with pytest.raises(NotFoundError):
            call(deleted.id, ANONYMOUS)
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == [kept]
    bench.store.janitor.sweep()
    assert objects(bench) == [kept.state_path]
    operation = bench.store.operations.get(session.id, deleted.id)
    assert operation.status is OperationStatus.COMPLETED


def test_it_outlives_its_session(bench: Bench) -> None:
    session = bench.running_session()
    checkpoint = saved(bench, session)
    end(bench, session)
    with_settings(bench, session_retention=-1.0).janitor.sweep()
    with pytest.raises(NotFoundError):
        bench.store.sessions.get(session.id)
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0, session_id=session.id) == [checkpoint]
    assert objects(bench) == [checkpoint.state_path]


def resumed(bench: Bench, checkpoint: Checkpoint) -> Session:
    spec = msgspec.structs.replace(SPEC, checkpoint_id=checkpoint.id)
    session = bench.store.sessions.create(spec, [WORKER], checkpoint=checkpoint)
    bench.run(bench.outbox.take()[0])
    return bench.store.sessions.get(session.id)


def test_a_session_that_goes_on_from_it_begins_with_its_state_and_step(bench: Bench) -> None:
    checkpoint = saved(bench, bench.running_session())
    session = resumed(bench, checkpoint)
    assert (session.step, session.spec.checkpoint_id) == (3, checkpoint.id)
    assert bench.store.snapshots.load(session.id) == Kept(b"weights and moments", True, [], "")
    step = bench.store.operations.accept(session.id, OperationKind.OPTIM_STEP, OptimStepRequest())
    bench.run(step.id, OptimStepResult(step=4, metrics={}))
    kept = bench.store.snapshots.load(session.id)
    assert (kept.snapshot, [operation.seq for operation in kept.replayed]) == (b"weights and moments", [1])


@pytest.mark.parametrize("how", ["covered", "stopped"])
def test_its_objects_stay_while_a_session_needs_them_and_no_longer(bench: Bench, how: str) -> None:
    checkpoint = saved(bench, bench.running_session())
    session = resumed(bench, checkpoint)
    bench.store.checkpoints.delete(checkpoint.id, ANONYMOUS)
    bench.store.janitor.sweep()
    with pytest.raises(NotFoundError):
        bench.store.checkpoints.get(checkpoint.id, ANONYMOUS)
    assert bench.store.snapshots.load(session.id).snapshot == b"weights and moments"
    if how == "covered":
        step = bench.store.operations.accept(session.id, OperationKind.OPTIM_STEP, OptimStepRequest())
        claim = bench.claim(step.id)
        bench.store.claims.finish(claim, OptimStepResult(step=4, metrics={}))
        assert bench.store.snapshots.save(claim, b"a later state")
        assert bench.store.snapshots.load(session.id) == Kept(b"a later state", False, [], claim.fence)
    else:
        end(bench, session)
    bench.store.janitor.sweep()
    assert checkpoint.state_path not in objects(bench)
    assert list(bench.redis.scan_iter("celerity:checkpoint:*")) == []


def test_a_covered_snapshot_does_not_take_the_checkpoint_with_it(bench: Bench) -> None:
    checkpoint = saved(bench, bench.running_session())
    session = resumed(bench, checkpoint)
    end(bench, session)
    bench.store.janitor.sweep()
    assert bench.objects.get(bench.store.checkpoints.get(checkpoint.id, ANONYMOUS).state_path) == b"weights and moments"


def test_a_session_cannot_go_on_from_what_was_deleted_meanwhile(bench: Bench) -> None:
    checkpoint = saved(bench, bench.running_session())
    bench.store.checkpoints.delete(checkpoint.id, ANONYMOUS)
    sessions = len(bench.store.sessions.list(ANONYMOUS, None, 20, 0))
    with pytest.raises(CheckpointGoneError):
        bench.store.sessions.create(SPEC, [WORKER], checkpoint=checkpoint)
    assert len(bench.store.sessions.list(ANONYMOUS, None, 20, 0)) == sessions
    assert bench.outbox.take() == []


def test_only_the_newest_of_each_session_and_kind_are_kept_when_a_setting_says_so(bench: Bench) -> None:
    one, two = bench.running_session(), bench.running_session()
    made = [saved(bench, one), saved(bench, one, INFERENCE), saved(bench, two), saved(bench, one), saved(bench, one)]
    bench.store.janitor.sweep()
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == made[::-1], "by default all are kept"
    with_settings(bench, checkpoints_kept=2).janitor.sweep()
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == made[:0:-1]
    assert made[0].state_path not in objects(bench)


def test_old_ones_go_when_a_setting_says_so(bench: Bench) -> None:
    checkpoint = saved(bench, bench.running_session())
    with_settings(bench, checkpoint_retention=3600.0).janitor.sweep()
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == [checkpoint]
    with_settings(bench, checkpoint_retention=-1.0).janitor.sweep()
    assert bench.store.checkpoints.list(ANONYMOUS, 20, 0) == []
    assert objects(bench) == []


def test_every_process_signs_with_the_same_secret(bench: Bench) -> None:
    first = bench.store.signing_secret.read()
    assert len(first) >= 32
    assert with_settings(bench).signing_secret.read() == first


def test_objects_that_cannot_be_deleted_go_the_next_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = saved(bench, bench.running_session())
    bench.store.checkpoints.delete(checkpoint.id, ANONYMOUS)

    def refuse(path: str) -> None:
        raise ObjectsAwayError(path)

    with monkeypatch.context() as locked:
        locked.setattr(bench.objects, "delete", refuse)
        bench.store.janitor.sweep()
    assert objects(bench) == [checkpoint.state_path]
    bench.store.janitor.sweep()
    assert objects(bench) == []
