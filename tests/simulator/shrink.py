"""A history that goes wrong, made smaller: programs, steps and faults are left out as long as it still does."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from tests.simulator.plan import Plan

T = TypeVar("T")
Fails = Callable[[Plan], Mapping[str, object] | None]


def shrink(plan: Plan, fails: Fails, seconds: float) -> Plan:
    """The smallest that was found in so many seconds. `fails` gives the faults of a run that went wrong, and None for
    one that did not."""
    until = time.monotonic() + seconds
    injected = fails(plan)
    assert injected is not None, "only what goes wrong can be made smaller"
    is_smaller = True
    while is_smaller and time.monotonic() < until:
        is_smaller = False
        for smaller in _smaller(plan, list(injected)):
            if time.monotonic() >= until:
                break
            found = fails(smaller)
            if found is not None:
                plan, injected, is_smaller = smaller, found, True
                break
    return plan


def _smaller(plan: Plan, injected: Sequence[str]) -> Iterator[Plan]:
    """The boldest first."""
    for program in plan.programs:
        if len(plan.programs) > 1:
            yield plan._replace(programs=tuple(other for other in plan.programs if other is not program))
    for part in _parts(injected):
        yield plan._replace(suppressed=plan.suppressed | set(part))
    for place, program in enumerate(plan.programs):
        for dropped in _parts(program.steps):
            steps = tuple(step for step in program.steps if step not in dropped)
            programs = (*plan.programs[:place], program._replace(steps=steps), *plan.programs[place + 1 :])
            yield plan._replace(programs=programs)
    if plan.workers > 1:
        yield plan._replace(workers=plan.workers - 1)
    if plan.apis > 1:
        yield plan._replace(apis=1)


def _parts(whole: Sequence[T]) -> Iterator[Sequence[T]]:
    """All of it, halves, quarters, down to each one."""
    size = len(whole)
    while size:
        for start in range(0, len(whole), size):
            yield whole[start : start + size]
        size //= 2
