"""A checkpoint: what a user asked to keep of a session, whole and never changed again."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from domain.session import SessionSpec


class CheckpointKind(StrEnum):
    """TRAINING is what training goes on from; INFERENCE is what other software loads."""

    TRAINING = "training"
    INFERENCE = "inference"


class Part(StrEnum):
    """The groups of files a checkpoint is made of: STATE of a training one, the others of an inference one."""

    STATE = "state"
    ADAPTER = "adapter"
    MERGED = "merged"


class CheckpointRequest(msgspec.Struct, frozen=True):
    """A checkpoint is of the session as it is when the operation's turn comes; there is nothing to ask for."""


class CheckpointFile(msgspec.Struct, frozen=True):
    """A file's name inside its part, and its size in bytes."""

    name: str
    size: int


class NewFile(NamedTuple):
    """A file about to be written: its exact size, and its bytes in chunks that are made as they are taken."""

    name: str
    size: int
    chunks: Iterable[bytes]

    @classmethod
    def of(cls, name: str, data: bytes) -> "NewFile":
        return cls(name, len(data), [data])


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint as the store knows it. Its id is that of the operation that made it.

    `folder` is where its objects lie; `created_at` is in Unix seconds by the store's clock, 0 until it is kept.
    """

    id: str
    kind: CheckpointKind
    session_id: str
    spec: SessionSpec
    step: int
    folder: str
    files: dict[Part, tuple[CheckpointFile, ...]]
    created_at: float = 0.0

    @property
    def size(self) -> int:
        """Of all its files, in bytes."""
        return sum(file.size for files in self.files.values() for file in files)

    @property
    def model_name(self) -> str:
        """What an inference checkpoint is called: its base model, its step, and enough of its id to be unique."""
        return f"{self.spec.base_model.name.rpartition('/')[2]}-rl-step-{self.step}-{self.id[:8]}"

    def path(self, part: Part, file: CheckpointFile) -> str:
        """The object that holds a file."""
        return f"{self.folder}{part}/{file.name}"

    @property
    def state_path(self) -> str:
        """The object that holds a training checkpoint's one file."""
        return self.path(Part.STATE, self.files[Part.STATE][0])
