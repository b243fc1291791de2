"""The first sine, cosine or exponential of a process is as exact as every later one, on any number of threads."""

import os
import subprocess
import sys

from stack.process import ROOT

# Each child is a process whose first vector math comes after its engine was made: without the mend, four of these
# children are wrong on two cores, in the mean.
CHILDREN = """
import os, torch
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine

angles = torch.linspace(-3, 3, 1 << 14)

def child(index):
    Engine(EngineConfig(device="cpu", torch_threads=8, kernels="torch"))
    function = (torch.sin, torch.cos, torch.exp)[index % 3]
    os._exit(0 if torch.equal(function(angles), function(angles)) else 3)

def ended():
    return os.waitstatus_to_exitcode(os.wait()[1])

codes = []
for index in range(2000):
    if os.fork() == 0:
        child(index)
    if index >= 8:
        codes.append(ended())
codes += [ended() for _ in range(8)]
print({code: codes.count(code) for code in set(codes)})
"""


def test_the_first_call_of_a_process_has_all_its_digits() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", CHILDREN], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.stdout == "{0: 2000}\n", answer.stdout + answer.stderr
