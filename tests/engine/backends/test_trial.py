"""CELERITY_KERNELS=auto: what is faster on this machine is used."""

from collections.abc import Iterator

import pytest
import torch

from tests.engine.configured_kernels import choose_configured
from workers.engine.backends import trial
from workers.engine.backends.trial import Trial, advantage, described, kernels_for, measured


@pytest.fixture(autouse=True)
def chosen_again() -> Iterator[None]:
    yield
    choose_configured()


@pytest.mark.parametrize(
    ("seconds", "used"),
    [
        ([(1.0, 2.0), (1.0, 2.0), (1.0, 2.0)], "native"),
        ([(2.0, 1.0), (2.0, 1.0), (2.0, 1.0)], "torch"),
        # Eight times slower at one kind of work, and four times faster at the other two.
        ([(8.0, 1.0), (1.0, 4.0), (1.0, 4.0)], "native"),
        # A little slower may be noise.
        ([(1.1, 1.0), (1.1, 1.0), (1.1, 1.0)], "native"),
        ([(1.3, 1.0), (1.3, 1.0), (1.3, 1.0)], "torch"),
    ],
)
def test_the_faster_one_is_used(monkeypatch: pytest.MonkeyPatch, seconds: list[tuple[float, float]], used: str) -> None:
    trials = tuple(Trial(f"kind {i}", *pair) for i, pair in enumerate(seconds))
    monkeypatch.setattr(trial, "measured", lambda *_: trials)
    assert kernels_for(torch.float32) == used


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_kinds_of_work_are_measured_on_this_machine(dtype: torch.dtype) -> None:
    trials = measured(dtype, torch.get_num_threads())
    assert [trial.kind for trial in trials] == ["8 rows", "192 rows", "attention"]
    assert all(trial.native > 0 and trial.torch > 0 for trial in trials) and advantage(trials) > 0
    assert "against torch's operations: 8 rows" in described(trials)


def test_where_no_kernels_were_built_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "built", lambda: None)
    monkeypatch.setattr(trial, "measured", lambda *_: pytest.fail("measured"))
    assert kernels_for(torch.float32) == "auto"
