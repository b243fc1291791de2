"""Checkpoints after a trial: whole and the undisturbed ones, or not there at all."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch

from domain.api_key import ANONYMOUS
from domain.checkpoint import Checkpoint, CheckpointKind, NewFile, Part
from settings import Settings
from store.objects import Objects
from store.store import Store
from tests.chaos.expected import Expected
from tests.chaos.object_store import object_paths
from tests.chaos.plan import CHECKPOINTS
from tests.chaos.story import SessionRun
from workers.checkpoint_writer import STATE_FILE
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.merged_export import MergedExport
from workers.engine.adapters.state import AdapterState


def saved(run: SessionRun) -> dict[str, int]:
    """The ids of the checkpoints that were made, with the number of the operation that saved each."""
    made = [n for n, operation in enumerate(run.accepted) if operation.kind in CHECKPOINTS and run.ends[n].data]
    return {run.ids[number]: number for number in made}


def kept(run: SessionRun) -> dict[str, int]:
    """Those that must be there."""
    return {id: number for id, number in saved(run).items() if number not in run.plan.deleted}


def differences(store: Store, objects: Objects, model: Path, run: SessionRun, expected: Expected) -> list[str]:
    """One line for each checkpoint of the session that is missing, left over, or not what it should be."""
    wanted = kept(run)
    listed = store.checkpoints.list(ANONYMOUS, 1_000_000, 0, run.session_id)
    found = {checkpoint.id: checkpoint for checkpoint in listed}
    lines = [f"{run.name}: checkpoint {id} is there without reason, or missing" for id in found.keys() ^ wanted.keys()]
    for id in found.keys() & wanted.keys():
        if _contents(objects, found[id]) != _expected(model, found[id], expected.results[wanted[id]]):
            lines.append(f"{run.name}: checkpoint {id} (operation {wanted[id]}) differs from the undisturbed one")
    return lines


def left_over(settings: Settings, runs: list[SessionRun]) -> list[str]:
    """One line for each folder of a checkpoint that is not kept and that no session has gone on from."""
    folders = _folders(settings)
    allowed = {id for run in runs for id in (*kept(run), run.origin)}
    surplus = [path for path in folders if path.parts[0] not in allowed]
    doubled = len(folders) - len({path.parts[0] for path in folders})
    lines = [f"{path} is left over" for path in surplus]
    return [*lines, f"{doubled} attempts lie beside what was kept"] if doubled else lines


def _folders(settings: Settings) -> set[Path]:
    """Of attempts to save a checkpoint: the checkpoint's id, and a name of its own."""
    return {Path(*path.parts[1:3]) for path in object_paths(settings) if path.parts[0] == "checkpoints"}


def _contents(objects: Objects, checkpoint: Checkpoint) -> dict[tuple[Part, str], bytes]:
    contents = {}
    for part, files in checkpoint.files.items():
        for file in files:
            with suppress(FileNotFoundError):
                contents[part, file.name] = objects.get(checkpoint.path(part, file))
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
