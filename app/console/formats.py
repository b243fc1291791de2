"""Numbers as people read them."""

import time

UNITS = ("B", "kB", "MB", "GB", "TB")


def duration(seconds: float | None) -> str:
    """0.42 s, 12 s, 3 min, 5 h, 2 d; a dash for none."""
    if seconds is None:
        return "–"
    for limit, divisor, unit in ((1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.3g} {unit}"
    return f"{seconds / 86_400:.3g} d"


def ago(moment: float) -> str:
    """Since a moment in Unix seconds; clocks may differ, so never less than nothing."""
    return f"{duration(max(0.0, time.time() - moment))} ago"


def size(count: float) -> str:
    """Bytes."""
    for unit in UNITS[:-1]:
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} {UNITS[-1]}"


def figure(value: float | None) -> str:
    """Four significant digits; a dash for none."""
    return "–" if value is None else f"{value:.4g}"
