"""`python -m benchmarks.plots`: each growth curve that has been measured as a picture beside its figures."""

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.report import FOLDER


def draw(curve: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    values = [row["value"] for row in curve["rows"]]
    axes.plot(values, [row["tokens_per_second"] for row in curve["rows"]], marker="o")
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, map(str, values))
    axes.set_ylim(bottom=0)
    axes.set(xlabel=curve["curve"], ylabel="tokens/s", title=f"{curve['curve']}, {curve['dtype']}")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    for file in sorted(FOLDER.glob("curve-*.json")):
        picture = file.with_suffix(".png")
        draw(json.loads(file.read_text()), picture)
        print(picture)


if __name__ == "__main__":
    main()
