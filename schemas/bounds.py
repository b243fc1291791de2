"""The range of a number: refused with one sentence, documented with JSON Schema's own words."""

from typing import Any

import msgspec

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INT32_MAX = 2**31 - 1
FLOAT32_MAX = 3.4028234663852886e38
FLOAT32_TINY = 1.1754943508222875e-38


class Bounds(msgspec.Struct, frozen=True):
    """least <= value <= most, and value < below where one is given."""

    least: float
    most: float
    below: float | None = None

    def hold(self, value: float) -> bool:
        return self.least <= value <= self.most and (self.below is None or value < self.below)

    def sentence(self, value: float) -> str:
        """Why `value` is refused: the side on which it is out of bounds. (The other may be a type's own limit.)"""
        if value < self.least:
            return f"must be at least {self.least}"
        return f"must be at most {self.most}" if self.below is None else f"must be below {self.below}"

    @property
    def schema(self) -> dict[str, Any]:
        """The same in JSON Schema."""
        upper = {"maximum": self.most} if self.below is None else {"exclusiveMaximum": self.below}
        return {"minimum": self.least, **upper}


INT64 = Bounds(INT64_MIN, INT64_MAX)
FLOAT32 = Bounds(-FLOAT32_MAX, FLOAT32_MAX)
