"""Short trials with a fault of each kind; `make chaos` runs long ones."""

from pathlib import Path

import pytest

from tests.chaos.faults.table import NEED_BUCKET, WEIGHTS
from tests.chaos.power_loss import power_loss_trial
from tests.chaos.trial import trial

# Each of them starts processes again and again, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(900)


def test_nothing_is_lost_doubled_or_changed_by_a_fault_of_each_kind(tmp_path: Path) -> None:
    report = trial(seed=1, operations=120, faults=len(WEIGHTS), folder=tmp_path)
    assert report.is_clean, str(report)
    assert report.ended == report.accepted
    assert report.faults.keys() <= {fault.__name__ for fault in WEIGHTS}
    assert report.faults.total() + report.idle == len(WEIGHTS)


def test_nothing_is_lost_doubled_or_changed_while_a_bucket_is_away_busy_slow_or_breaks_off(tmp_path: Path) -> None:
    report = trial(seed=1, operations=80, faults=len(NEED_BUCKET), folder=tmp_path, in_bucket=True, kinds=NEED_BUCKET)
    assert report.is_clean, str(report)
    assert report.faults.total() + report.idle == len(NEED_BUCKET)


def test_what_a_redis_that_lost_its_last_writes_still_knows_ends_as_if_the_rest_had_never_been(tmp_path: Path) -> None:
    report = power_loss_trial(seed=1, losses=2, folder=tmp_path)
    assert report.is_clean, str(report)
    assert report.accepted == report.ended + report.forgotten
