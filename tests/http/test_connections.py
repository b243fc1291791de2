"""How many connections there may be, and how quickly their peers have to move."""

import pytest

from app.server.body_budget import BodyBudget
from app.server.connections import Connections
from app.server.pace import LEAST_RATE, Pace


class Line:
    """A connection as far as its set is concerned."""

    def __init__(self) -> None:
        self.transport = self
        self.is_cut = False

    def abort(self) -> None:
        self.is_cut = True


@pytest.mark.parametrize(
    ("seconds", "moved", "is_kept"),
    [
        (0, 0, True),
        (20, 0, True),
        (20.1, 0, False),
        (20.1, LEAST_RATE, True),
        (30, 10 * LEAST_RATE, True),
        (30.1, 10 * LEAST_RATE, False),
    ],
)
def test_after_a_grace_so_many_bytes_a_second_have_to_move(seconds: float, moved: int, is_kept: bool) -> None:
    assert Pace(20, now=100, moved=7).is_kept(100 + seconds, 7 + moved) is is_kept


def test_one_more_than_there_may_be_takes_the_place_of_the_longest_silent() -> None:
    connections, lines = Connections(most=3, grace=1), [Line() for _ in range(5)]
    for line in lines[:3]:
        connections.connections.add(line)  # type: ignore[arg-type]
        connections.is_silent(line)  # type: ignore[arg-type]
    connections.is_busy(lines[0])  # type: ignore[arg-type]
    connections.is_silent(lines[1])  # type: ignore[arg-type]
    for line in lines[3:]:
        connections.connections.add(line)  # type: ignore[arg-type]
        connections.is_silent(line)  # type: ignore[arg-type]
    assert [line.is_cut for line in lines] == [False, True, True, False, False]
    assert len(connections.connections) == 3


def test_a_quarter_of_the_room_is_left_to_those_who_have_none() -> None:
    budget = BodyBudget(100)
    with budget.reserve() as first, budget.reserve() as second, budget.reserve() as another:
        first.owner = second.owner = "ann"
        another.owner = "ben"
        assert first.grow(60)
        assert not second.grow(16) and second.grow(15)
        assert not first.grow(61) and another.grow(25)
    with budget.reserve() as alone, budget.reserve() as after:
        alone.owner = after.owner = "ann"
        assert alone.grow(90) and alone.grow(100), "one alone may have it all"
        assert not after.grow(1)


def test_the_room_is_given_back_whatever_happens() -> None:
    budget = BodyBudget(10)

    def fail() -> None:
        with budget.reserve() as one:
            assert one.grow(6) and one.grow(8) and not one.grow(11)
            with budget.reserve() as other:
                other.owner = "another"
                assert not other.grow(3) and other.grow(2)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with budget.reserve() as all_of_it:
        assert all_of_it.grow(10)
