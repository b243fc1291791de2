"""A process that made an engine ends as it wants to, whether it closes the engine or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stack.process import ROOT
from tests.engine.configured_kernels import KERNELS

PROGRAM = """
import sys
from pathlib import Path
from domain.session import LoraConfig
from tests.engine.calls import sample_request
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine

engine = Engine(EngineConfig(device="cpu", torch_threads=2, kernels=sys.argv[2]))
engine.start()
engine.create_adapter("s", Path(sys.argv[1]), LoraConfig(), 1).result()
if sys.argv[3] == "busy":
    first = engine.sample("s", sample_request([[1, 2]], num_samples=1, max_tokens=2))
    asked = [engine.sample("s", sample_request([[1, 2]], num_samples=64, max_tokens=60)) for _ in range(200)]
    first.result()
    assert not asked[-1].done()
if sys.argv[3] == "closed":
    engine.close()
raise SystemExit(7)
"""


@pytest.mark.parametrize("state", ["idle", "busy", "closed"])
def test_its_exit_code_is_its_own(tiny: Path, state: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(tiny), KERNELS, state]
    answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 7, answer.stderr
