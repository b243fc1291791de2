"""A short trial; `make chaos` runs long ones."""

from pathlib import Path

from tests.chaos.trial import trial


def test_nothing_is_lost_doubled_or_changed_by_kills_stalls_and_cuts(tmp_path: Path) -> None:
    report = trial(seed=1, operations=60, faults=6, folder=tmp_path)
    assert report.is_clean, str(report)
    assert report.ended == report.accepted == 60
    assert report.faults.total() == 6
