from pathlib import Path

import pytest

from benchmarks.report import write_report
from benchmarks.table import table
from benchmarks.targets import targets


def row(engine: str, workload: str, rate: float, peak: float = 1e9) -> dict[str, object]:
    return {"engine": engine, "workload": workload, "tokens_per_second": rate, "peak_bytes": peak, "parts": 1}


@pytest.fixture(autouse=True)
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.report.FOLDER", tmp_path)


def test_what_was_not_measured_stands_in_brackets_and_has_no_ratio() -> None:
    write_report(
        "sampling-bfloat16-rollout", {"rows": [row("Celerity", "rollout", 900), row("generate", "rollout", 200)]}
    )
    assert "| rollout, bfloat16 | 900 | 200 | (679) | - | (223) |" in table()
    assert "| rollout, bfloat16, against generate | 4.50 | 4 | yes |" in table()
    assert "| rollout, bfloat16, against vLLM-CPU | not measured | 1.2 |  |" in table()


def test_a_ratio_below_the_aim_and_memory_above_it_are_told() -> None:
    write_report("training-float32", {"rows": [row("Celerity", "grpo", 299, 4.6e9), row("peft", "grpo", 100)]})
    assert "| training, float32, against peft | 2.99 | 3 | no |" in table()
    assert "| memory in training, float32 | 4.6 GB | at most 4.5 GB | no |" in table()


def test_each_aim_is_named_once() -> None:
    names = [target.what for target in targets()]
    assert len(names) == len(set(names)) == 16
