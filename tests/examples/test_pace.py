"""How much the demo does on a machine of a given speed."""

import pytest

from examples.pace import SIZES, choose, is_enough

BUDGET = 480.0


@pytest.mark.parametrize("seconds_per_reply", [0.001, 0.2, 0.3, 0.6, 1.0, 1.2])
def test_what_is_chosen_leaves_time_to_spare_and_is_enough(seconds_per_reply: float) -> None:
    size = choose(seconds_per_reply, BUDGET)
    trained = size.steps * size.questions * size.samples
    assert (trained + 2 * size.held_out) * seconds_per_reply <= BUDGET * 0.7
    assert is_enough(trained)


def test_a_fast_machine_does_the_most_and_a_slower_one_less() -> None:
    chosen = [choose(seconds, BUDGET) for seconds in (0.001, 0.5, 0.8, 1.2)]
    assert chosen[0] == SIZES[0]
    trained = [size.steps * size.questions * size.samples for size in chosen]
    assert trained == sorted(set(trained), reverse=True)


@pytest.mark.parametrize(("seconds_per_reply", "seconds"), [(2.0, BUDGET), (60.0, BUDGET), (0.001, -1.0)])
def test_a_machine_that_is_too_slow_does_small_steps_until_its_time_is_up(
    seconds_per_reply: float, seconds: float
) -> None:
    size = choose(seconds_per_reply, seconds)
    assert size.questions * size.samples < min(each.questions * each.samples for each in SIZES)
    assert is_enough(size.trained) and not is_enough(size.trained - 1)
