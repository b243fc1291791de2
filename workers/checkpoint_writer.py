"""Checkpoints of a session, from copies of its adapter: written in the thread of the task that asked for it."""

from collections.abc import Callable, Mapping, Sequence

import torch

from domain.checkpoint import Checkpoint, CheckpointKind, NewFile, Part
from models.catalog import Catalog
from store.claims import Claim
from store.store import Store
from workers.deadline import Deadline
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.merged_export import MergedExport
from workers.engine.adapters.state import AdapterState
from workers.retry import OperationRetry, until_available

STATE_FILE = "state.safetensors"

Parts = Mapping[Part, Sequence[NewFile]]


class CheckpointWriter:
    """`dtype` is that of the base models here, which a merged model takes over.

    The session's queue waits meanwhile; other sessions go on, since the engine made its copy and is free. What is not
    written by the deadline (object storage may be away) ends as TIMEOUT: its folder is collected like that of any
    attempt that failed.
    """

    def __init__(self, store: Store, catalog: Catalog, dtype: torch.dtype, retry: OperationRetry) -> None:
        self._store, self._catalog, self._dtype, self._retry = store, catalog, dtype, retry

    def training(self, claim: Claim, copied: AdapterState, deadline: Deadline) -> Checkpoint:
        """Weights, optimizer state and step. Gradients that no step has used are not part of it."""
        state = copied.without_gradients()
        files = [NewFile.of(STATE_FILE, state.to_bytes())]
        return self._write(claim, CheckpointKind.TRAINING, state.step, lambda: {Part.STATE: files}, deadline)

    def inference(self, claim: Claim, adapter: AdapterExport, deadline: Deadline) -> Checkpoint:
        """The adapter, and the base model with the adapter merged into it."""
        name = claim.spec.base_model.name
        merged = MergedExport(self._catalog.directory(name), adapter, self._dtype)

        def parts() -> Parts:
            return {
                Part.ADAPTER: list(adapter.peft_files(claim.spec.lora, name)),
                Part.MERGED: list(merged.files()),
            }

        return self._write(claim, CheckpointKind.INFERENCE, adapter.step, parts, deadline)

    def _write(
        self,
        claim: Claim,
        kind: CheckpointKind,
        step: int,
        make_parts: Callable[[], Parts],
        deadline: Deadline,
    ) -> Checkpoint:
        """The parts are made anew for each attempt to write them."""
        checkpoints = self._store.checkpoints
        folder = until_available(lambda: checkpoints.begin(claim), f"beginning checkpoint {claim.operation_id}")

        def write() -> Checkpoint:
            timed = {
                part: [file._replace(chunks=deadline.within(file.chunks)) for file in files]
                for part, files in make_parts().items()
            }
            return checkpoints.write(claim, folder, kind, step, timed)

        return self._retry.until_available(claim, write, "writing the files")
