"""A thousand histories, and some planted faults; `make simulate` runs many more of both."""

import subprocess
import sys

import pytest

from tests.simulator.mutants import MUTANTS, ROOT, find

SEED = 1
# Of those that are found soonest.
PLANTED = (
    "a key is not looked at",
    "a replay leaves out the last operation",
    "what has ended still counts as waiting",
)


def simulate(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.simulator", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr
    return ran.stdout


def test_nothing_is_lost_doubled_out_of_order_or_left_over_in_a_thousand_histories() -> None:
    """As many as half a minute of a processor allows, where that is less."""
    simulate("--seed", str(SEED), "--histories", "1000", "--seconds", "30")


def test_a_seed_gives_the_same_history_each_time() -> None:
    assert simulate("--seed", "7", "--trace") == simulate("--seed", "7", "--trace")


def test_a_real_server_answers_every_call_as_the_simulated_one_does(redis_url: str) -> None:
    assert "answers are the same" in simulate("--seed", "5", "--histories", "30", "--compare", redis_url)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    assert find(mutant, SEED, seconds=60), "it was not found within a minute"


def test_every_planted_fault_fits_the_code_of_today() -> None:
    for mutant in MUTANTS:
        assert (ROOT / mutant.file).read_text().count(mutant.old) == 1, mutant.name
