"""The command line that the parts share."""

import argparse
from dataclasses import dataclass
from typing import Any

DTYPES = ("bfloat16", "float32")


@dataclass(frozen=True)
class Options:
    """`quick` is for a look within minutes: less work, and the same kinds of it."""

    dtype: str
    rounds: int
    engines: list[str] | None
    workloads: list[str] | None
    quick: bool

    @property
    def about(self) -> dict[str, Any]:
        """What a report says of the run."""
        return {"dtype": self.dtype, "quick": self.quick, "rounds": self.rounds}

    def wants(self, workload: str) -> bool:
        return not self.workloads or workload in self.workloads


def parse(description: str | None, *, rounds: int = 3) -> Options:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16", help="of the base model")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--engines", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--workloads", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    return Options(**vars(parser.parse_args()))
