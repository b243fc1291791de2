"""The demo's loop, shortened: the bundled model, the example as it is, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path

from models import bundled
from stack.process import ROOT
from stack.running import running_stack

SHORT = {"steps": 2, "questions": 2, "samples": 3, "held-out": 2, "max-tokens": 6}


def test_the_example_trains_the_bundled_model_and_says_what_it_did(tmp_path: Path) -> None:
    options = [part for name, value in SHORT.items() for part in (f"--{name}", str(value))]
    with running_stack(tmp_path / "data") as stack:
        command = [sys.executable, "-m", "examples.grpo_arithmetic", "--url", stack.url]
        command += ["--tokenizer", str(bundled.DIRECTORY / bundled.NAME), "--output", str(tmp_path), *options]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (answer.returncode == 0) == (summary["reward_last"] > summary["reward_first"])
    assert summary["steps"] == 2
    assert 0 <= summary["accuracy_before"] <= 1
    assert 2 * 2 * 3 <= summary["tokens_trained"] <= 2 * 2 * 3 * 6
    assert summary["tokens_trained"] < summary["tokens_sampled"]
    assert (tmp_path / "reward.png").stat().st_size > 0
