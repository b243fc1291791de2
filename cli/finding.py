"""What `celerity doctor` found of one thing."""

from typing import NamedTuple


class Finding(NamedTuple):
    """`advice` is what to do, empty where all is well."""

    what: str
    found: str
    advice: str = ""

    @property
    def line(self) -> str:
        return f"{'ok ' if not self.advice else 'BAD'} {self.what}: {self.found}" + (
            f"\n    {self.advice}" if self.advice else ""
        )
