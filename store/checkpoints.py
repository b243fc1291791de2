"""Checkpoints: written aside by whoever holds the claim, read, listed, deleted, and removed when their time is over.

Objects come first. The record appears in the script that ends the operation (see claims.py), so a checkpoint is
there whole or not at all; what a failed or lost attempt has written lies in a folder of its own and is collected.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import msgspec

from domain.checkpoint import Checkpoint, CheckpointFile, CheckpointKind, NewFile, Part
from domain.codec import decode
from domain.operation import ErrorCode, OperationFailedError
from settings import DAY
from store import keys
from store.claims import Claim
from store.context import Context
from store.errors import NotFoundError
from store.objects import Objects

PAGE = 100
RECORD_FIELDS = ("record", "created_at", "deleted")


class Checkpoints:
    def __init__(self, context: Context, objects: Objects) -> None:
        self._context = context
        self._objects = objects

    def begin(self, claim: Claim) -> str:
        """The folder for this attempt, which is collected unless the attempt's checkpoint is kept."""
        folder = f"checkpoints/{claim.operation_id}/{claim.fence}/"
        self._context.redis.zadd(keys.SAVES, {folder: self._context.now()})
        return folder

    def write(
        self, claim: Claim, folder: str, kind: CheckpointKind, step: int, parts: Mapping[Part, Sequence[NewFile]]
    ) -> Checkpoint:
        """Writes the files of a checkpoint, which exists once the claimed operation has finished with it.

        Raises OperationFailedError, RESOURCE_EXHAUSTED, before anything is written when the disk has no room for it.
        """
        files = {part: tuple(CheckpointFile(new.name, new.size) for new in news) for part, news in parts.items()}
        checkpoint = Checkpoint(
            id=claim.operation_id,
            kind=kind,
            session_id=claim.session_id,
            spec=claim.spec,
            step=step,
            folder=folder,
            files=files,
        )
        self._refuse_without_room(checkpoint.size)
        for part, news in parts.items():
            for file, new in zip(files[part], news, strict=True):
                path = checkpoint.path(part, file)
                self._objects.put(path, new.chunks)
                assert self._objects.size(path) == file.size, f"{path} is not as large as it was said to be"
        return checkpoint

    def _refuse_without_room(self, size: int) -> None:
        free, floor = self._objects.free_bytes(), self._context.settings.disk_floor_bytes
        if free is not None and free - size < floor:
            raise OperationFailedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"The checkpoint takes {size} bytes, and the server's disk has {free} free, of which {floor} are kept "
                "free. Delete checkpoints that are no longer needed, and try again.",
            )

    def get(self, checkpoint_id: str, owner: str) -> Checkpoint:
        """Raises NotFoundError, for another owner's as for none."""
        found = self.find([checkpoint_id])
        if not found or found[0].spec.owner != owner:
            raise NotFoundError("no such checkpoint")
        return found[0]

    def find(self, checkpoint_ids: Sequence[str]) -> list[Checkpoint]:
        """Those of many ids that there are, in one round trip."""
        with self._context.redis.pipeline(transaction=False) as pipeline:
            for checkpoint_id in checkpoint_ids:
                pipeline.hmget(keys.checkpoint(checkpoint_id), RECORD_FIELDS)
            rows = pipeline.execute()
        return [
            msgspec.structs.replace(decode(record, Checkpoint), created_at=float(created_at))
            for record, created_at, deleted in rows
            if record is not None and deleted is None
        ]

    def list(
        self, owner: str, limit: int, offset: int, session_id: str = "", kind: CheckpointKind | None = None
    ) -> list[Checkpoint]:
        """The owner's, newest first; of one session and of one kind where they are given."""
        index = keys.checkpoints(f"{owner}:{session_id}:{kind or ''}")
        ids = self._context.redis.zrevrange(index, offset, offset + limit - 1)
        return self.find([id.decode() for id in ids])

    def newest(self, owner: str, session_id: str = "", kind: CheckpointKind | None = None) -> Iterator[Checkpoint]:
        """All of them, read as far as they are taken."""
        for start in count(0, PAGE):
            found = self.list(owner, PAGE, start, session_id, kind)
            yield from found
            if not found:
                return

    def delete(self, checkpoint_id: str, owner: str) -> None:
        """Its objects go too, as soon as no session needs them. Raises NotFoundError, for another owner's too."""
        self.get(checkpoint_id, owner)
        if not self._context.scripts.run("delete_checkpoint", id=checkpoint_id):
            raise NotFoundError("no such checkpoint")

    def file(self, path: str) -> Path | None:
        """Where an object lies on this host; None when it lies elsewhere and `presigned` has it."""
        return self._objects.file(path)

    def presigned(self, path: str, seconds: float) -> str:
        """A URL from which anyone may read the object for so long."""
        return self._objects.presigned(path, seconds)

    def sweep(self) -> None:
        """Deletes what the retention settings let go, and collects what lost attempts have written."""
        settings = self._context.settings
        if settings.checkpoint_retention:
            self._delete_older_than(self._context.now() - settings.checkpoint_retention)
        if settings.checkpoints_kept:
            self._delete_all_but_newest(settings.checkpoints_kept)
        for folder in self._context.redis.zrange(keys.SAVES, 0, -1):
            _, operation_id, fence, _ = folder.decode().split("/")
            self._context.scripts.run("collect_save", folder=folder, id=operation_id, claim=fence)
        self._collect_again(self._context.now() - DAY)

    def _collect_again(self, before: float) -> None:
        """What a late worker may have written to a folder after it was collected."""
        for folder in self._context.redis.zrangebyscore(keys.COLLECTED, "-inf", before):
            self._context.redis.sadd(keys.GARBAGE, folder)
            self._context.redis.zrem(keys.COLLECTED, folder)

    def _delete_older_than(self, time: float) -> None:
        for checkpoint_id in self._context.redis.zrangebyscore(keys.checkpoints("::"), "-inf", time):
            self._context.scripts.run("delete_checkpoint", id=checkpoint_id)

    def _delete_all_but_newest(self, kept: int) -> None:
        """Of each session and kind."""
        ids = [id.decode() for id in self._context.redis.zrevrange(keys.checkpoints("::"), 0, -1)]
        seen: Counter[tuple[str, CheckpointKind]] = Counter()
        for checkpoint in self.find(ids):
            scope = checkpoint.session_id, checkpoint.kind
            seen[scope] += 1
            if seen[scope] > kept:
                self._context.scripts.run("delete_checkpoint", id=checkpoint.id)
