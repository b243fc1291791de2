"""How much of a loop a machine does in a given time, from what the first few replies took."""

from typing import NamedTuple

# Of the time, for a machine that gets slower on the way.
RESERVE = 0.3


class Size(NamedTuple):
    """`questions` x `samples` replies in each of `steps`, and `held_out` questions before and after them."""

    steps: int
    questions: int
    samples: int
    held_out: int

    @property
    def trained(self) -> int:
        return self.steps * self.questions * self.samples

    def __str__(self) -> str:
        return f"{self.steps} steps of {self.questions} questions x {self.samples} replies"


# From the largest to the smallest, all of which raise the reward whatever the seed.
SIZES = (Size(15, 8, 8, 30), Size(15, 8, 4, 30), Size(10, 8, 4, 20), Size(8, 8, 4, 10))
# For a machine that is too slow for any of them: as many of these steps as there is time for.
SLOW = Size(16, 4, 4, 4)


def choose(seconds_per_reply: float, seconds: float) -> Size:
    """The largest of SIZES that is done in `seconds`; where there is none, SLOW."""
    affordable = (1 - RESERVE) * seconds / seconds_per_reply
    return next((size for size in SIZES if size.trained + 2 * size.held_out <= affordable), SLOW)


def is_enough(trained: int) -> bool:
    """Whether so many replies are expected to raise the reward."""
    return trained >= min(size.trained for size in SIZES)
