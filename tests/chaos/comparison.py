"""How a disturbed session differs from what is expected of it: one line for each difference."""

import math
from typing import Any

from domain.operation import ErrorCode, OperationKind
from store.store import Store
from tests.chaos.api import Api, End
from tests.chaos.expected import Expected
from tests.chaos.plan import CHECKPOINTS
from tests.chaos.story import SessionRun
from workers.engine.adapters.state import AdapterState

# A sample runs beside others here and alone there: the same tokens, logprobs to fp32 rounding.
LOGPROB_TOLERANCE = 1e-5


def differences(api: Api, run: SessionRun, expected: Expected) -> list[str]:
    """Of the ends of its operations."""
    lines = []
    for number, wanted in expected.results.items():
        end, kind = run.ends[number], run.plan.operations[number].kind
        if not _is_equal(api, kind, end, wanted, run.ids[number]):
            lines.append(f"{run.name} operation {number} ({kind}): {str(end)[:300]} != {str(wanted)[:300]}")
    return lines


def wrongly_ended(run: SessionRun) -> list[str]:
    """Cancelled although the cancel was refused, or nobody asked for it, or the other way round; refused by a stop
    that never was, or overtaken by a later operation that ran."""
    lines = []
    for number, end in run.ends.items():
        if (end.code is ErrorCode.CANCELLED) != run.cancelled.get(number, False):
            lines.append(f"{run.name} operation {number}: {end.code} after a cancel {run.cancelled.get(number)}")
    inactive = [number for number, end in run.ends.items() if end.code is ErrorCode.SESSION_NOT_ACTIVE]
    if inactive and not run.is_stopped:
        lines.append(f"{run.name} operations {inactive} were refused by a session that was not stopped")
    # Neighbouring samples run together, in any order.
    ran = [
        n for n, end in run.ends.items() if not end.had_no_effect and run.accepted[n].kind is not OperationKind.SAMPLE
    ]
    if inactive and ran and max(ran) > min(inactive):
        lines.append(f"{run.name} operation {max(ran)} ran though {min(inactive)}, before it, was refused")
    return lines


def weights_differ(store: Store, run: SessionRun, expected: Expected) -> list[str]:
    """Whether the last snapshot is not, byte for byte, the undisturbed adapter after the same step."""
    snapshot = store.snapshots.load(run.session_id).snapshot
    if snapshot is None:
        return []
    wanted = expected.states[AdapterState.from_bytes(snapshot).step]
    same = snapshot == wanted.to_bytes()
    return [] if same else [f"{run.name}: the last snapshot differs from the undisturbed adapter"]


def log_differs(store: Store, run: SessionRun) -> list[str]:
    """Whether what was logged is not there in its order, each number once."""
    points = store.metric_series.logged(run.session_id, "", 1_000_000)
    logged = [(point.step, point.values) for point in points]
    return [] if logged == run.logged else [f"{run.name}: logged {run.logged}, found {logged}"]


def _is_equal(api: Api, kind: OperationKind, end: End, wanted: Any, id: str) -> bool:
    if isinstance(wanted, ErrorCode) or end.data is None:
        return end.code == wanted
    if kind in CHECKPOINTS:
        return bool(end.data["checkpoint_id"] == id)
    tolerance = LOGPROB_TOLERANCE if kind is OperationKind.SAMPLE else 0.0
    return _is_close(end.data, api.view(kind, wanted), tolerance)


def _is_close(found: Any, wanted: Any, tolerance: float) -> bool:
    """JSON with the same shape, names, words and integers, and numbers that are no further apart."""
    if isinstance(wanted, dict):
        same = isinstance(found, dict) and found.keys() == wanted.keys()
        return same and all(_is_close(found[name], value, tolerance) for name, value in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(_is_close(*pair, tolerance) for pair in zip(found, wanted, strict=True))
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(found, wanted, rel_tol=0, abs_tol=tolerance)
    return bool(found == wanted)
