"""What grows and what does not: `python -m benchmarks.growth`.

`finished`: what accepting, claiming, finishing, listing and sweeping cost after 50,000 finished operations and after
50,000 stopped sessions, through the store's real scripts on the embedded server. `load`: operations per second of the
whole stack on a tiny model, for 1 to 64 sessions and 1 and 2 workers. Both are printed and plotted.
"""

import argparse
import asyncio

from benchmarks.finished import Row, after_finished_operations, after_stopped_sessions
from benchmarks.load import SETTINGS, load
from benchmarks.report import FOLDER, write_report
from benchmarks.tiny_stack import tiny_stack

SESSIONS = (1, 2, 4, 8, 16, 32, 64)
WORKERS = (1, 2)
Curve = dict[int, float]


def throughput(workers: int, seconds: float) -> Curve:
    """Operations per second by the number of sessions that ask at once."""
    curve: Curve = {}
    with tiny_stack({**SETTINGS, "CELERITY_TORCH_THREADS": "1"}, workers=workers) as stack:
        for sessions in SESSIONS:
            tally = asyncio.run(load(stack.url, sessions, seconds))
            if not tally.is_clean:
                raise RuntimeError(str(tally))
            curve[sessions] = tally.completed / seconds
            print(f"{workers} workers, {sessions:2} sessions: {curve[sessions]:6.0f} operations/s", flush=True)
    return curve


def show(title: str, rows: list[Row]) -> None:
    names = list(rows[0].milliseconds)
    print(f"\nmedian milliseconds after so many {title}")
    print(f"{title:>18}  {'MB':>6}  " + "  ".join(f"{name:>9}" for name in names))
    for row in rows:
        print(f"{row.count:18}  {row.megabytes:6.1f}  " + "  ".join(f"{row.milliseconds[n]:9.2f}" for n in names))
    print(f"{row.bytes_each:.0f} bytes of memory each", flush=True)


def plot_finished(title: str, rows: list[Row]) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in rows[0].milliseconds:
        axes.plot([row.count for row in rows], [row.milliseconds[name] for row in rows], marker="o", label=name)
    axes.set(xlabel=title, ylabel="ms, median", ylim=(0, None))
    axes.legend(ncols=3, fontsize="small")
    figure.savefig(FOLDER / f"growth_{title.replace(' ', '_')}.png", dpi=120)


def plot_load(curves: dict[int, Curve]) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for workers, curve in curves.items():
        axes.plot(list(curve), list(curve.values()), marker="o", label=f"{workers} worker{'s' * (workers > 1)}")
    axes.set(xlabel="sessions", ylabel="operations per second", ylim=(0, None))
    axes.set_xscale("log", base=2)
    axes.legend()
    figure.savefig(FOLDER / "growth_load.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--only", choices=("operations", "sessions", "load"))
    parser.add_argument("--most", type=int, default=50_000, help="finished operations, and stopped sessions")
    parser.add_argument("--seconds", type=float, default=6.0, help="for each point of the curves of load")
    options = parser.parse_args()
    finished = {"operations": after_finished_operations, "sessions": after_stopped_sessions}
    for name, title in (("operations", "finished operations"), ("sessions", "stopped sessions")):
        if options.only in (None, name):
            rows = finished[name](options.most)
            show(title, rows)
            write_report(f"growth_{name}", {"rows": [row.as_json() for row in rows]})
            plot_finished(title, rows)
    if options.only in (None, "load"):
        curves = {workers: throughput(workers, options.seconds) for workers in WORKERS}
        write_report(
            "growth_load",
            {"operations_per_second": {str(w): {str(s): r for s, r in c.items()} for w, c in curves.items()}},
        )
        plot_load(curves)


if __name__ == "__main__":
    main()
