from workers.engine.scheduler import FairScheduler


class Piece:
    def advance(self) -> bool:
        return True

    def fail(self, error: Exception) -> None:
        raise AssertionError(error)


def turns(scheduler: FairScheduler, costs: dict[Piece, float], count: int) -> list[Piece]:
    taken = []
    for _ in range(count):
        work = scheduler.next()
        scheduler.charge(work, costs[work])  # type: ignore[index]
        taken.append(work)
    return taken  # type: ignore[return-value]


def test_device_time_is_shared_evenly_whatever_a_piece_costs() -> None:
    scheduler, long, short = FairScheduler(), Piece(), Piece()
    scheduler.add(long)
    scheduler.add(short)
    taken = turns(scheduler, {long: 10.0, short: 1.0}, 44)
    assert taken.count(long) == 4
    assert taken.count(short) == 40


def test_a_newcomer_starts_level_and_without_credit() -> None:
    scheduler, old, new = FairScheduler(), Piece(), Piece()
    scheduler.add(old)
    turns(scheduler, {old: 1.0}, 100)
    scheduler.add(new)
    taken = turns(scheduler, {old: 1.0, new: 1.0}, 20)
    assert taken.count(old) == taken.count(new) == 10


def test_what_is_removed_gets_no_turn() -> None:
    scheduler, gone = FairScheduler(), Piece()
    scheduler.add(gone)
    scheduler.remove(gone)
    scheduler.remove(gone)
    assert not scheduler
