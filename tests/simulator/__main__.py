"""`python -m tests.simulator`: histories from a seed on. The first that fails is made smaller and traced; the same
seed gives it again."""

import argparse
import os
import secrets
import sys

MANY = 100_000
FOR_EVER = 1e9
MUTANT_SECONDS = 60.0


def main() -> int:
    options = _parser().parse_args()
    if options.mutants is not None:
        return _find_mutants(options.mutants, options.seed or 0)
    return _run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.simulator", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first history; by default one is drawn")
    parser.add_argument("--histories", type=int, help=f"by default {MANY:,}, or 1 with a seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run them")
    parser.add_argument("--seconds", type=float, default=FOR_EVER, help="of a processor, at most, for all of them")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds to make smaller what went wrong")
    parser.add_argument("--trace", action="store_true", help="every call of a history that may have gone well")
    parser.add_argument("--compare", help="URL of a Redis, empty and unused, whose answers are compared")
    parser.add_argument("--mutants", nargs="*", help="plant faults in copies of the code and find them; all, or these")
    return parser


def _run(options: argparse.Namespace) -> int:
    # What is loaded takes seconds, and whoever looks for mutants needs none of it.
    from tests.simulator.comparison import compare
    from tests.simulator.history import prepare
    from tests.simulator.summary import run_many, trace_of

    first = secrets.randbelow(10**9) if options.seed is None else options.seed
    number = options.histories or (MANY if options.seed is None else 1)
    seeds = range(first, first + number)
    if options.compare:
        prepare()
        return compare(options.compare, seeds)
    if options.trace:
        prepare()
        print(trace_of(first, 0.0))
        return 0
    print(f"seeds from {first} on", flush=True)
    summary = run_many(seeds, options.jobs, options.seconds)
    print(summary)
    if summary.failed is None:
        return 0
    seed, outcome = summary.failed
    if options.shrink and options.jobs > 1:
        prepare()
    print(f"\n{trace_of(seed, options.shrink)}" if options.shrink else f"\n{outcome.failure}")
    print(f'\nseed {seed} failed; again: make simulate ARGS="--seed {seed}"')
    return 1


def _find_mutants(names: list[str], seed: int) -> int:
    from tests.simulator.mutants import MUTANTS, find

    missed = 0
    for mutant in MUTANTS:
        if not names or mutant.name in names:
            found = find(mutant, seed, MUTANT_SECONDS)
            missed += not found
            lines = found.splitlines()
            print(f"{mutant.name}: {f'{lines[1]} {lines[-3]}' if found else 'NOT FOUND'}", flush=True)
    return missed


if __name__ == "__main__":
    # Sets of strings are in another order under each hash seed, and a history must not be.
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulator", *sys.argv[1:]],
                  {**os.environ, "PYTHONHASHSEED": "0"})  # fmt: skip
    sys.exit(main())
