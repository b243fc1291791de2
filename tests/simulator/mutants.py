"""Faults that were planted: each a line of the product as it must not be, which the simulator has to find."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PARTS = ("app", "domain", "models", "schemas", "settings", "store", "tracing", "workers")
FOUND, NOT_FOUND = 1, 0


class Mutant(NamedTuple):
    """The line `old` of the file, which is there once, as `new`."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant("an old fence finishes", "store/lua/finish.lua", "if record[1] ~= claim then return refused() end", ""),
    Mutant("a place is given twice", "store/lua/common.lua", "'next_seq', 1) - 1", "'next_seq', 0)"),
    Mutant(
        "any worker claims", "store/lua/claim.lua",
        "if redis.call('HGET', keys.session(session), 'worker') ~= worker then return false end", "",
    ),
    Mutant(
        "what has completed is claimed again", "store/transitions.py",
        "Move.CLAIM: (frozenset({_S.READY})", "Move.CLAIM: (frozenset({_S.READY, _S.COMPLETED})",
    ),
    Mutant(
        "what has ended still counts as waiting", "store/lua/common.lua",
        "  redis.call('SREM', keys.owner_waiting(redis.call('HGET', keys.session(session), 'owner')), id)\n", "",
    ),
    Mutant(
        "what is cancelled stays in the queue", "store/lua/common.lua",
        "redis.call('ZREM', keys.session_queue(session), id)",
        "if record[5] ~= 'CANCELLED' then redis.call('ZREM', keys.session_queue(session), id) end",
    ),
    Mutant(
        "a replay leaves out the last operation", "store/lua/load_snapshot.lua",
        "keys.replay(session), 0, -1)", "keys.replay(session), 0, -2)",
    ),
    Mutant("a key is forgotten", "store/lua/accept.lua", "remember(idempotency_key, digest, id, session)", ""),
    Mutant("a key is not looked at", "store/lua/accept.lua", "if first then return refused(first) end", ""),
    Mutant(
        "an older snapshot counts", "store/lua/cover.lua",
        "if is_ended[record[1]] or stale then return 0 end", "if is_ended[record[1]] then return 0 end",
    ),
    Mutant(
        "a snapshot of a change that was lost counts", "store/lua/cover.lua",
        "if redis.call('HGET', keys.operation(id), 'finished_by') ~= claim then return 0 end", "",
    ),
    Mutant("a snapshot covers what came after it", "store/lua/cover.lua", "forget_replay(session, seq)",
           "forget_replay(session, '+inf')"),
    Mutant(
        "a snapshot is copied after the next has begun", "workers/snapshot_writer.py",
        "lambda: self._submit(claim, state)",
        "lambda: self._submit(claim, self._engine.copy_adapter(claim.session_id).result())",
    ),
    Mutant("two that change an adapter run at once", "store/lua/common.lua",
           "    if not only_reads[kind] and place > 1 then break end\n", ""),
    Mutant("cleared gradients are not replayed", "domain/kinds.py",
           "return self.changes_it_when_not_finite and error.code is ErrorCode.NON_FINITE", "return False"),
    Mutant("an adapter that was elsewhere meanwhile is used", "workers/residency.py",
           "session.epoch == claim.epoch and session.last_change == claim.last_change", "True"),
    Mutant("an adapter that is ahead is used", "workers/residency.py",
           " and session.last_change == claim.last_change", ""),
    Mutant("nobody looks for lost operations", "workers/lost_operations.py",
           "self._store.sessions.move(session_id, self._worker_id, self._worker_id)", "pass"),
    Mutant("nobody publishes again", "workers/heartbeat.py", "        store.claims.publish_overdue(worker_id)\n", ""),
    Mutant("a checkpoint in use is deleted", "store/lua/common.lua",
           " or redis.call('SCARD', keys.checkpoint_sessions(checkpoint)) > 0 then return end", " then return end"),
    Mutant("a removed session leaves its curve", "store/lua/remove_session.lua", "keys.series(session), ", ""),
)  # fmt: skip


def find(mutant: Mutant, seed: int, seconds: float) -> str:
    """What the simulator says of it within so many seconds; empty when it finds nothing."""
    with tempfile.TemporaryDirectory(prefix="celerity-mutant-") as folder:
        copy = Path(folder)
        _copy_product(copy)
        file = copy / mutant.file
        text = file.read_text()
        assert text.count(mutant.old) == 1, f"{mutant.name}: its line is not in {mutant.file} once"
        file.write_text(text.replace(mutant.old, mutant.new))
        options = ["--seed", str(seed), "--histories", "1000000", "--seconds", str(seconds), "--shrink", "0"]
        ran = subprocess.run(
            [sys.executable, "-m", "tests.simulator", *options], cwd=copy, capture_output=True, text=True, check=False
        )
        assert ran.returncode in (FOUND, NOT_FOUND), ran.stderr
        return ran.stdout if ran.returncode == FOUND else ""


def _copy_product(folder: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for part in (*PARTS, "tests/simulator"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    shutil.copy(ROOT / "logs.py", folder)
