"""Checkpoints after a trial: whole and the undisturbed ones, or not there at all."""

from collections.abc import Iterator
from pathlib import Path

import torch

from domain.api_key import ANONYMOUS
from domain.checkpoint import Checkpoint, CheckpointKind, NewFile, Part
from store.store import Store
from tests.chaos.client import Told
from tests.chaos.plan import CHECKPOINTS
from tests.chaos.verdict import Undisturbed
from workers.checkpoint_writer import STATE_FILE
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.merged_export import MergedExport
from workers.engine.adapters.state import AdapterState


def kept(told: Told) -> dict[str, int]:
    """The ids of the checkpoints that must be there, with the number of the operation that saved each."""
    operations = enumerate(told.chapter.operations)
    return {told.ids[n]: n for n, planned in operations if planned.kind in CHECKPOINTS and n not in told.chapter.doomed}


def faults(store: Store, model: Path, told: Told, expected: Undisturbed) -> list[str]:
    """One line for each checkpoint of the chapter that is missing, left over, or not what it should be."""
    wanted = kept(told)
    found = {
        checkpoint.id: checkpoint for checkpoint in store.checkpoints.list(ANONYMOUS, 1_000_000, 0, told.session_id)
    }
    lines = [f"{told.name}: checkpoint {id} is there without reason, or missing" for id in found.keys() ^ wanted.keys()]
    for id in found.keys() & wanted.keys():
        if _contents(store, found[id]) != _expected(model, found[id], expected.ends[wanted[id]]):
            lines.append(f"{told.name}: checkpoint {id} (operation {wanted[id]}) differs from the undisturbed one")
    return lines


def left_over(store: Store, chapters: list[Told]) -> list[str]:
    """One line for each folder of a checkpoint that is not kept and that no session has gone on from."""
    store.janitor.sweep()
    folder = store.checkpoints.file("checkpoints")
    assert folder is not None
    folders = [Path(path).relative_to(folder) for path in folder.glob("*/*")]
    allowed = {id for told in chapters for id in (*kept(told), told.ids[told.chapter.origin])}
    surplus = [path for path in folders if path.parts[0] not in allowed]
    doubled = len(folders) - len({path.parts[0] for path in folders})
    return [f"{path} is left over" for path in surplus] + [f"{doubled} attempts lie beside what was kept"] * bool(
        doubled
    )


def _contents(store: Store, checkpoint: Checkpoint) -> dict[tuple[Part, str], bytes]:
    contents = {}
    for part, files in checkpoint.files.items():
        for file in files:
            path = store.checkpoints.file(checkpoint.path(part, file))
            contents[part, file.name] = path.read_bytes() if path and path.is_file() else b""
    return contents


def _expected(
    model: Path, checkpoint: Checkpoint, saved: AdapterState | AdapterExport
) -> dict[tuple[Part, str], bytes]:
    if isinstance(saved, AdapterState):
        assert checkpoint.kind is CheckpointKind.TRAINING
        return {(Part.STATE, STATE_FILE): saved.to_bytes()}
    spec = checkpoint.spec
    adapter = _joined(Part.ADAPTER, saved.peft_files(spec.lora, spec.base_model.name))
    return adapter | _joined(Part.MERGED, MergedExport(model, saved, torch.float32).files())


def _joined(part: Part, files: Iterator[NewFile]) -> dict[tuple[Part, str], bytes]:
    return {(part, file.name): b"".join(file.chunks) for file in files}
