"""`python -m tests.chaos`: a trial whose seed is printed, so that it can be had again."""

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from store.private_files import STACK_LOG
from tests.chaos.power_loss import power_loss_trial
from tests.chaos.trial import trial


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--faults", type=int, default=90)
    parser.add_argument("--bucket", action="store_true", help="objects are in a bucket, and not on a disk")
    parser.add_argument("--power-losses", type=int, help="instead: so often, Redis forgets what it wrote last")
    parser.add_argument("--log", type=Path, help="where the log of all processes is left")
    options = parser.parse_args()
    size = f"{options.operations} operations, {options.faults} faults"
    if options.power_losses:
        size = f"{options.power_losses} power losses"
    print(f"seed {options.seed}: {size}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="celerity-chaos-") as folder:
        try:
            if options.power_losses:
                report = power_loss_trial(options.seed, options.power_losses, Path(folder))
            else:
                report = trial(options.seed, options.operations, options.faults, Path(folder), in_bucket=options.bucket)
        finally:
            if options.log:
                shutil.copy(Path(folder) / "data" / STACK_LOG, options.log)
    print(report)
    print(f"{time.monotonic() - began:.0f} s; {'clean' if report.is_clean else 'NOT CLEAN'}")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
