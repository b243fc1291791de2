"""What is in a worker's memory: a real engine, whose free memory is what its adapters leave of a small whole."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec
import pytest

from domain.operation import ErrorCode, OperationFailedError, OperationKind
from domain.session import LoraConfig, SessionSpec
from models.catalog import Catalog
from settings import Settings
from store.claims import Claim
from store.snapshots import Kept
from store.store import open_store
from store.workers import needed
from testing.tiny_model import make_tiny_model
from tests import waiting
from tests.engine.calls import sample_request
from tests.gate import Gate
from workers import residency
from workers.deadline import Deadline
from workers.engine import core
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine
from workers.engine.loading import model_loader
from workers.residency import Residency
from workers.retry import OperationRetry

WHOLE = 24_000_000
RESERVED = 100_000


class Bench:
    """A residency, and the claims it is asked with."""

    def __init__(self, redis_url: str, folder: Path, most: int) -> None:
        make_tiny_model(folder / "models" / "tiny")
        self.other_model = folder / "other"
        make_tiny_model(self.other_model)
        catalog = Catalog([folder / "models"])
        (self.card,) = catalog.cards()
        self.store = open_store(Settings(data_dir=folder, redis_url=redis_url))
        self.engine = Engine(EngineConfig(device="cpu", kernels="native", torch_threads=1))
        self.engine.start()
        retry = OperationRetry(self.store.claims, 60.0)
        self.residency = Residency(
            self.store,
            self.engine,
            catalog,
            retry,
            most,
            RESERVED,
            self.free_bytes,
            60.0,
        )

    def close(self) -> None:
        self.engine.close()
        self.store.close()

    def adapters(self) -> dict[str, int]:
        """The sizes of those that the engine really has: fp32 weights, gradients and two moments."""
        cached = self.engine._core._cached
        return {id: 16 * each.adapter.weights.numel() for id, each in list(cached.items())}

    def free_bytes(self) -> int:
        return WHOLE - sum(self.adapters().values())

    def spec(self, rank: int) -> SessionSpec:
        return SessionSpec(base_model=self.card, lora=LoraConfig(rank=rank), seed=1)

    def claim(
        self,
        session_id: str,
        rank: int = 8,
        epoch: int = 1,
        kind: OperationKind = OperationKind.SAMPLE,
        seq: int = 1,
        seconds: float = 60.0,
        fence: str = "",
        last_change: str = "",
    ) -> Claim:
        return Claim(
            operation_id=f"of {session_id}", session_id=session_id, kind=kind, seq=seq, epoch=epoch,
            last_change=last_change, spec=self.spec(rank), stored=b"", fence=fence, timeout_seconds=seconds,
        )  # fmt: skip


eventually = partial(waiting.eventually, seconds=10)


@pytest.fixture
def bench(redis_url: str, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(redis_url, tmp_path, most=100)
    yield bench
    bench.close()


def test_an_adapter_takes_what_was_foretold(bench: Bench) -> None:
    with bench.residency.hold(bench.claim("a", rank=5)):
        assert bench.adapters() == {"a": bench.spec(5).adapter_bytes}
        assert bench.residency.size == bench.spec(5).adapter_bytes


def test_several_of_the_largest_rank_take_turns_in_memory(bench: Bench) -> None:
    size = bench.spec(256).adapter_bytes
    assert WHOLE // 2 < needed(size) < WHOLE, "so two do not fit with what is done with them"
    for session_id in ("a", "b", "a", "c"):
        with bench.residency.hold(bench.claim(session_id, 256)):
            assert list(bench.adapters()) == [session_id]
            assert bench.free_bytes() >= RESERVED + needed(size) - size


def test_one_that_is_in_use_is_waited_for_and_nobody_overtakes(bench: Bench) -> None:
    entered: list[str] = []

    def enter(session_id: str, rank: int) -> None:
        with bench.residency.hold(bench.claim(session_id, rank)):
            entered.append(session_id)

    with ExitStack() as stack:
        stack.enter_context(bench.residency.hold(bench.claim("small")))
        stack.enter_context(bench.residency.hold(bench.claim("large", 256)))
        threads = [threading.Thread(target=enter, args=("other", 256))]
        threads[0].start()
        eventually(bench.residency._admission.locked)
        threads.append(threading.Thread(target=enter, args=("small", 8)))
        threads[1].start()
        threads[1].join(0.3)
        assert entered == []
    for thread in threads:
        thread.join()
    assert sorted(entered) == ["other", "small"]
    assert "large" not in bench.adapters()


def test_room_that_does_not_come_in_time_is_waited_for_no_longer(bench: Bench) -> None:
    with ExitStack() as stack:
        stack.enter_context(bench.residency.hold(bench.claim("busy", 256)))
        late = bench.claim("late", 256, kind=OperationKind.CREATE_SESSION, seconds=0.2)
        with pytest.raises(OperationFailedError, match="left no room") as failed, bench.residency.hold(late):
            pass
        assert failed.value.error.code is ErrorCode.TIMEOUT
        stack.enter_context(bench.residency.hold(bench.claim("small")))
    with bench.residency.hold(bench.claim("late", 256)):
        assert "late" in bench.adapters()


def test_the_time_that_the_store_is_away_is_not_the_operations_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, load = [0.0], bench.store.snapshots.load

    def load_late(session_id: str) -> Kept:
        now[0] += 1000.0
        return load(session_id)

    monkeypatch.setattr(bench.store.snapshots, "load", load_late)
    monkeypatch.setattr(residency, "Deadline", partial(Deadline, clock=lambda: now[0]))
    with bench.residency.hold(bench.claim("a", kind=OperationKind.CREATE_SESSION)):
        assert "a" in bench.adapters()


def test_a_model_that_is_being_fetched_keeps_nobody_else_waiting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.residency.hold(bench.claim("here")):
        pass
    gate = Gate(monkeypatch, bench.residency._catalog, "directory")
    coming = threading.Thread(target=lambda: bench.residency.hold(bench.claim("coming")).__enter__())
    coming.start()
    gate.wait()
    with bench.residency.hold(bench.claim("here")):
        assert list(bench.adapters()) == ["here"]
    gate.open()
    coming.join()
    assert sorted(bench.adapters()) == ["coming", "here"]


def test_a_model_that_is_being_loaded_keeps_nobody_else_waiting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.residency.hold(bench.claim("here")):
        pass
    monkeypatch.setattr(bench.residency._catalog, "directory", lambda _: bench.other_model)
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    coming = threading.Thread(target=lambda: bench.residency.hold(bench.claim("coming")).__enter__())
    coming.start()
    gate.wait()
    with bench.residency.hold(bench.claim("here", seconds=20)):
        assert bench.engine.sample("here", sample_request([[1]], max_tokens=1)).result(20)
    gate.open()
    coming.join()
    assert sorted(bench.adapters()) == ["coming", "here"]


def test_one_that_does_not_fit_alone_is_refused_and_the_others_go_on(bench: Bench) -> None:
    tight = msgspec.structs.replace(bench.card, adapter_width=WHOLE)
    claim = bench.claim("a")
    spec = msgspec.structs.replace(claim.spec, base_model=tight)
    with (
        pytest.raises(OperationFailedError, match="smaller rank") as refused,
        bench.residency.hold(msgspec.structs.replace(claim, spec=spec)),
    ):
        pass
    assert refused.value.error.code is ErrorCode.RESOURCE_EXHAUSTED
    with bench.residency.hold(bench.claim("b")):
        assert list(bench.adapters()) == ["b"]


def test_beyond_the_most_the_longest_unused_is_parked(redis_url: str, tmp_path: Path) -> None:
    bench = Bench(redis_url, tmp_path, most=2)
    for session_id in ("a", "b", "a", "c"):
        with bench.residency.hold(bench.claim(session_id)):
            pass
    eventually(lambda: sorted(bench.adapters()) == ["a", "c"])
    bench.close()


def test_an_adapter_of_an_older_epoch_begins_again(bench: Bench) -> None:
    with bench.residency.hold(bench.claim("a")):
        old = bench.engine._core._cached["a"].adapter
    with bench.residency.hold(bench.claim("a")):
        assert bench.engine._core._cached["a"].adapter is old
    with bench.residency.hold(bench.claim("a", epoch=2)):
        assert bench.engine._core._cached["a"].adapter is not old
    assert bench.residency.count == 1


def test_one_that_is_waited_for_may_be_asked_for_again_meanwhile(bench: Bench) -> None:
    entered: list[str] = []
    done = threading.Event()

    def enter(session_id: str, is_first: bool = False) -> None:
        with bench.residency.hold(bench.claim(session_id, 256)):
            entered.append(session_id)
            if is_first:
                done.wait()

    def start(*args: object) -> threading.Thread:
        thread = threading.Thread(target=enter, args=args, daemon=True)
        thread.start()
        return thread

    threads = [start("a", True)]
    eventually(lambda: entered == ["a"])
    threads.append(start("b"))
    eventually(bench.residency._admission.locked)
    threads.append(start("a"))
    threads[-1].join(0.3)
    done.set()
    for thread in threads:
        thread.join(10)
    assert sorted(entered) == ["a", "a", "b"]


def test_letting_go_of_what_others_hold_does_not_wait_for_one_that_is_being_restored(bench: Bench) -> None:
    with bench.residency.hold(bench.claim("a")):
        pass
    with bench.residency._lock("a"):
        bench.residency.release_others(set)
        assert bench.residency.count == 1
    bench.residency.release_others(set)
    eventually(lambda: bench.adapters() == {})


def test_letting_go_of_what_others_hold_does_not_wait_for_a_busy_engine(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.residency.hold(bench.claim("a")):
        pass
    gate = Gate(monkeypatch, core, "Adapter")
    bench.engine.create_adapter("b", bench.other_model, LoraConfig(), 1)
    gate.wait()
    beat = threading.Thread(target=bench.residency.release_others, args=(set,), daemon=True)
    beat.start()
    beat.join(10)
    waited = beat.is_alive()
    gate.open()
    assert not waited
    eventually(lambda: bench.residency.count == 0)
    assert "a" not in bench.adapters()


def test_what_comes_while_a_heartbeat_asks_what_is_held_here_is_not_let_go_of(bench: Bench) -> None:
    for session_id in ("left", "back"):
        with bench.residency.hold(bench.claim(session_id)):
            pass

    def read_held() -> set[str]:
        """The answer is of the moment before two sessions came, one of them for the second time."""
        for claim in (bench.claim("new"), bench.claim("back", epoch=3)):
            with bench.residency.hold(claim):
                pass
        return set()

    bench.residency.release_others(read_held)
    eventually(lambda: sorted(bench.adapters()) == ["back", "new"])


def test_an_operation_of_an_older_epoch_does_not_touch_the_adapter_of_a_later_one(bench: Bench) -> None:
    with bench.residency.hold(bench.claim("a", epoch=3)):
        current = bench.engine._core._cached["a"].adapter
        late = bench.residency.hold(bench.claim("a", epoch=1))
        with pytest.raises(OperationFailedError, match="another worker") as refused, late:
            pass
        assert refused.value.error.code is ErrorCode.SESSION_NOT_ACTIVE
        assert bench.engine._core._cached["a"].adapter is current


def adapter_for(bench: Bench, claim: Claim) -> object:
    with bench.residency.hold(claim):
        return bench.engine._core._cached["a"].adapter


def changed_adapter(bench: Bench, fence: str) -> object:
    with bench.residency.hold(bench.claim("a", kind=OperationKind.OPTIM_STEP, seq=7, fence=fence)) as deadline:
        deadline.committed = True
        return bench.engine._core._cached["a"].adapter


@pytest.mark.parametrize("kind", [OperationKind.SAMPLE, OperationKind.OPTIM_STEP])
def test_an_adapter_that_is_ahead_of_a_server_that_forgot_begins_again(bench: Bench, kind: OperationKind) -> None:
    changed = changed_adapter(bench, "the lost step")
    assert adapter_for(bench, bench.claim("a", seq=8, last_change="the lost step")) is changed
    assert adapter_for(bench, bench.claim("a", seq=9, last_change="the lost step")) is changed
    assert adapter_for(bench, bench.claim("a", kind=kind, seq=9)) is not changed


@pytest.mark.parametrize(("code", "last_change"), [(ErrorCode.INVALID_INPUT, ""), (ErrorCode.NON_FINITE, "it")])
def test_a_step_that_failed_leaves_the_adapter_good_for_the_next(
    bench: Bench, code: ErrorCode, last_change: str
) -> None:
    adapter = adapter_for(bench, bench.claim("a"))
    step = bench.claim("a", kind=OperationKind.OPTIM_STEP, fence="it")
    with pytest.raises(OperationFailedError), bench.residency.hold(step):
        raise OperationFailedError(code, "no")
    assert adapter_for(bench, bench.claim("a", seq=2, last_change=last_change)) is adapter


def test_an_adapter_that_is_ahead_is_good_for_no_later_operation_when_it_could_not_be_restored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = changed_adapter(bench, "the lost step")
    with monkeypatch.context() as patch:
        patch.setattr(bench.residency._catalog, "directory", lambda name: Path(name).read_bytes())
        with pytest.raises(OperationFailedError, match="could not be loaded"):
            bench.residency.hold(bench.claim("a", seq=7)).__enter__()
    assert adapter_for(bench, bench.claim("a", seq=8, last_change="the lost step")) is not ahead


def test_sessions_that_are_gone_leave_nothing_behind(bench: Bench) -> None:
    for number in range(3):
        with bench.residency.hold(bench.claim(f"s{number}")):
            pass
        bench.residency.release(f"s{number}")
    eventually(lambda: bench.residency.count == len(bench.residency._locks) == 0)
