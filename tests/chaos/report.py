"""What a trial counted: operations and how they ended, faults, latencies, and each difference found."""

from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.retrying_client import Latency


@dataclass
class Report:
    accepted: int = 0
    ended: int = 0
    lost: int = 0
    doubled: int = 0
    stuck: int = 0
    # By a Redis that lost its last writes.
    forgotten: int = 0
    retries: int = 0
    sessions: Counter[str] = field(default_factory=Counter)
    without_effect: Counter[str] = field(default_factory=Counter)
    # Cancels of what had begun.
    too_late: int = 0
    refused: int = 0
    logged: int = 0
    expired: int = 0
    checkpoints: int = 0
    deleted: int = 0
    differences: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    # Faults that found nothing to do harm to.
    idle: int = 0
    not_tried: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    slowest: Latency = field(default_factory=Latency)

    @property
    def is_clean(self) -> bool:
        return self.accepted > 0 and not (self.lost or self.doubled or self.stuck or self.differences)

    def __str__(self) -> str:
        times = sorted(self.latencies)
        at = {share: 1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.9, 0.99, 1.0)}
        lines = [
            f"accepted {self.accepted}, ended {self.ended}, lost {self.lost}, doubled {self.doubled}, "
            f"forgotten {self.forgotten}, stuck sessions {self.stuck}",
            f"sessions: {dict(self.sessions)}; {self.checkpoints} checkpoints kept, {self.deleted} deleted",
            f"ended without effect: {dict(self.without_effect)}; too late to cancel {self.too_late}",
            f"refused after a stop {self.refused}; logged {self.logged}; expired {self.expired}",
            f"differences from the undisturbed run: {len(self.differences)}",
            f"{self.faults.total()} faults: {dict(self.faults.most_common())}; {self.idle} when all had ended",
            f"requests repeated {self.retries}",
            "accepting an operation, ms: " + ", ".join(f"p{100 * share:.0f} {ms:.0f}" for share, ms in at.items()),
            f"the slowest request: {self.slowest}",
        ]
        if self.not_tried:
            lines.append(f"NOT TRIED, since this deployment has not what they need: {', '.join(self.not_tried)}")
        return "\n".join(lines + self.differences[:10])
