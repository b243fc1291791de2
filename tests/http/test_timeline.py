"""Operations as bars on one scale of time."""

from typing import Any

import pytest

from app.console.timeline import timeline
from domain.operation import Operation, OperationKind, OperationStatus


def operation(created_at: float, status: OperationStatus = OperationStatus.COMPLETED, **times: Any) -> Operation:
    kind = OperationKind.SAMPLE
    return Operation(id="o", session_id="s", kind=kind, seq=1, status=status, created_at=created_at, **times)


def test_each_phase_has_its_seconds_and_its_place_on_the_common_scale() -> None:
    early = operation(1000.0, uploaded_in=10.0, started_at=1020.0, ended_at=1025.0, read_at=1090.0)
    late = operation(1040.0, uploaded_in=0.0, started_at=1050.0, ended_at=1080.0)
    newest, oldest = timeline([late, early])
    assert oldest.seconds == {"arrived": 10.0, "waited": 20.0, "ran": 5.0, "lay": 65.0}
    assert newest.seconds == {"arrived": 0.0, "waited": 10.0, "ran": 30.0}
    # 100 seconds, from 990 to 1090, are 600 wide.
    marks = {mark.name: (mark.at, mark.wide) for mark in oldest.marks}
    assert marks == {"arrived": (0, 60), "waited": (60, 120), "ran": (180, 30), "lay": (210, 390)}
    assert {mark.name: mark.at for mark in newest.marks}["ran"] == pytest.approx(360)


def test_what_has_not_ended_reaches_until_now_and_what_failed_at_once_did_not_run() -> None:
    (running,) = timeline([operation(1000.0, OperationStatus.RUNNING, started_at=1001.0)])
    assert running.seconds["ran"] > 1e6
    (failed,) = timeline([operation(1000.0, OperationStatus.FAILED, ended_at=1004.0)])
    assert failed.seconds == {"arrived": 0.0, "waited": 4.0}
    assert timeline([]) == []
