"""`python -m benchmarks.table`: the tables of what has been measured, and the ratios against what must be reached."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import published
from benchmarks.engines import CELERITY, GENERATE, LLAMA, PEFT, SKYRL, VLLM
from benchmarks.options import DTYPES
from benchmarks.report import FOLDER, read_report
from benchmarks.targets import memory, targets

SAMPLERS = (CELERITY.name, GENERATE.name, VLLM.name, SKYRL.name, LLAMA.name)
TRAINERS = (CELERITY.name, PEFT.name, SKYRL.name)
WORKLOADS = ("1 sequence", "8 sequences", "32 sequences", "rollout")
NOT_OF_THIS_RUN = (
    "Figures in brackets are not of this run: the engine was not measured, and they are what was published."
)

Rows = dict[str, dict[str, Any]]


def table() -> str:
    return "\n\n".join(("\n".join(_sampling()), "\n".join(_training()), "\n".join(_ratios()), NOT_OF_THIS_RUN)) + "\n"


def _sampling() -> Iterator[str]:
    yield from _head("sampling, tokens/s", SAMPLERS)
    for dtype in DTYPES:
        for workload in WORKLOADS:
            rows = _rows(f"sampling-{dtype}-{workload}")
            known = published.SAMPLING.get((dtype, workload), {})
            yield _line(f"{workload}, {dtype}", [_rate(name, rows, known) for name in SAMPLERS])


def _training() -> Iterator[str]:
    yield from _head("GRPO forward-backward and step", TRAINERS)
    for dtype in DTYPES:
        rows = _rows(f"training-{dtype}")
        known = published.TRAINING.get((dtype, "grpo"), {})
        yield _line(f"tokens/s, {dtype}", [_rate(name, rows, known) for name in TRAINERS])
        yield _line(f"peak memory, GB, {dtype}", [_memory(rows.get(name)) for name in TRAINERS])


def _ratios() -> Iterator[str]:
    yield from _head("ratio", ("reached", "wanted", ""))
    for target in targets():
        ratio = target.ratio()
        cells = ["not measured", f"{target.least:g}", ""]
        if ratio is not None:
            cells = [f"{ratio:.2f}", f"{target.least:g}", "yes" if ratio >= target.least else "no"]
        yield _line(target.what, cells)
    for dtype in DTYPES:
        if measured := memory(dtype):
            peak, most = measured
            cells = [f"{peak / 1e9:.1f} GB", f"at most {most / 1e9:g} GB", "yes" if peak <= most else "no"]
            yield _line(f"memory in training, {dtype}", cells)


def _rows(part: str) -> Rows:
    record = read_report(part)
    return {row["engine"]: row for row in record["rows"]} if record else {}


def _rate(name: str, rows: Rows, known: Mapping[str, float]) -> str:
    if name in rows:
        return f"{rows[name]['tokens_per_second']:.0f}"
    return f"({known[name]:g})" if name in known else "-"


def _memory(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    parts = f" in {row['parts']} parts" if row["parts"] > 1 else ""
    return f"{row['peak_bytes'] / 1e9:.1f}{parts}"


def _head(title: str, columns: tuple[str, ...]) -> Iterator[str]:
    yield _line(title, list(columns))
    yield _line("---", ["---:"] * len(columns))


def _line(first: str, cells: list[str]) -> str:
    return f"| {' | '.join([first, *cells])} |"


def main() -> None:
    text = table()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
