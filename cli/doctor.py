"""`celerity doctor`: is everything there that a server needs, and what to do where it is not."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from cli.finding import Finding
from cli.output import as_json, show
from cli.redis_findings import redis_findings
from cli.store_access import beside_settings
from models.catalog import Catalog
from models.folders import model_folders
from settings import Settings
from stack.plan import read_plan
from store.errors import ObjectsAwayError
from store.objects import open_objects


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Look after Redis, torch, models, disk and port. The exit code is 1 when something is to be done."""
    try:
        settings = beside_settings()
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    findings = [finding for check in CHECKS for finding in check(settings)]
    show([finding._asdict() for finding in findings], [finding.line for finding in findings], as_json)
    raise SystemExit(any(finding.advice for finding in findings))


def _objects(settings: Settings) -> Iterator[Finding]:
    try:
        open_objects(settings.objects_url, settings.data_dir).check()
    except (ValueError, ObjectsAwayError) as error:
        named = "name a bucket or a folder that is there, and the keys that open it"
        local = "make it writable for the user of this process, or name another folder in DATA_DIR"
        yield Finding("objects", str(error), named if settings.objects_url else local)
        return
    if settings.objects_url:
        yield Finding("objects", f"reached at {settings.objects_url}")


def _torch(settings: Settings) -> Iterator[Finding]:
    # As a worker has it: threads that spin would count as work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Torch takes a second or two to load, which no other command needs to wait for.
    import torch

    from workers.engine.device.threads import use_threads
    from workers.runtime import engine_config

    use_threads(settings.torch_threads)
    try:
        device = engine_config(settings).torch_device
    except ValueError as error:
        yield Finding("device", str(error), "set CELERITY_DEVICE to one that is there, or to auto")
        return
    yield Finding("device", f"{device}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    if device.type == "cpu":
        yield from _kernels(settings)


def _kernels(settings: Settings) -> Iterator[Finding]:
    import torch

    from workers.engine.backends.trial import described, faster, measured
    from workers.engine.kernels.kernel import NOT_BUILT, built
    from workers.engine.kernels.levels import chosen
    from workers.runtime import engine_config

    if settings.kernels == "torch":
        yield Finding("kernels", "torch's operations, as CELERITY_KERNELS says")
        return
    try:
        level, file = chosen(), built()
    except ValueError as error:
        yield Finding("kernels", str(error), "choose another CELERITY_CPU_LEVEL, or auto")
        return
    if level is None:
        yield Finding("kernels", "none for this processor: torch's operations do the work")
    elif file is None:
        yield Finding("kernels", f"level {level.name}: {NOT_BUILT}", "python -m workers.engine.kernels.build")
    else:
        trials = measured(engine_config(settings).torch_dtype, torch.get_num_threads())
        name = faster(trials) if settings.kernels == "auto" else settings.kernels
        yield Finding("kernels", f"{name}, {described(trials)}")


def _models(settings: Settings) -> Iterator[Finding]:
    from workers.engine.loading.description import describe

    try:
        catalog = Catalog(model_folders(settings.models_dir), describe)
    except ValueError as error:
        yield Finding("models", str(error), "correct CELERITY_MODELS_DIR")
        return
    names = [card.name for card in catalog.cards()]
    advice = "" if names else "`make setup` brings one; CELERITY_MODELS_DIR names a folder of others"
    yield Finding("models", ", ".join(names) or "none on this host", advice)
    for name, reason in sorted(catalog.refused.items()):
        yield Finding(f"model {name}", f"refused: {reason}", "mend its folder, or take it away")


def _disk(settings: Settings) -> Iterator[Finding]:
    folder = settings.data_dir.resolve()
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    advice = "" if free > settings.disk_floor_bytes else f"free some: {settings.disk_floor_bytes} bytes are kept free"
    yield Finding("disk", f"{free} bytes free for {folder}", advice)
    if not os.access(there, os.W_OK):
        yield Finding("data folder", f"{folder} cannot be written", "name another in DATA_DIR")


def _port(settings: Settings) -> Iterator[Finding]:
    if settings.embedded_url_file.exists():
        yield Finding("port", f"a stack runs on the data of {Path(settings.data_dir).resolve()}")
        return
    try:
        plan = read_plan(os.environ)
    except ValueError as error:
        yield Finding("port", str(error), "choose another PORT, or end what holds it")
        return
    yield Finding("port", f"{plan.bind} is free")


CHECKS: tuple[Callable[[Settings], Iterator[Finding]], ...] = (redis_findings, _objects, _torch, _models, _disk, _port)
