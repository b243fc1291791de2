"""The examples as they are, told of the base_url by their environment alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stack.process import ROOT


@pytest.mark.parametrize("script", ["together_sdk_grpo.py", "tinker_bridge_sft.py"])
def test_an_example_runs(script: str, base_url: str, models_dir: Path) -> None:
    environment = {**os.environ, "TOGETHER_BASE_URL": base_url, "TOGETHER_API_KEY": "any"}
    command = [
        sys.executable,
        f"examples/{script}",
        "--model",
        "tiny",
        "--tokenizer",
        f"{models_dir}/tiny",
        "--steps",
        "2",
    ]
    answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert len(re.findall(r"^step \d: .*loss -?\d", answer.stdout, re.MULTILINE)) == 2
