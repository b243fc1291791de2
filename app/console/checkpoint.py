"""One checkpoint: saved after a question, its files to download, and deleted after another."""

from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.auth import caller, own_session
from app.console.blueprint import PREFIX, console
from app.console.session import SESSION
from app.links import downloads
from app.state import state
from domain.checkpoint import CheckpointKind, CheckpointRequest
from domain.operation import OperationKind

CHECKPOINT = f"{PREFIX}/checkpoints/<id:checkpoint_id>"


@console.get(f"{SESSION}/save")
def ask_to_save(session_id: str) -> str:
    own_session(session_id)
    return render_template(
        "console/confirm.html",
        question="Save the adapter as it is now?",
        meaning="For download: the adapter's files, and the base model with it merged in. It waits for its turn.",
        verb="Save a checkpoint",
        is_harmless=True,
        action=url_for("console.save", session_id=session_id),
        back=url_for("console.session", session_id=session_id),
    )


@console.post(f"{SESSION}/save")
def save(session_id: str) -> Response:
    own_session(session_id)
    saving = state().store.operations.accept(session_id, OperationKind.INFERENCE_CHECKPOINT, CheckpointRequest())
    return redirect(url_for("console.operation", session_id=session_id, operation_id=saving.id))


@console.get(CHECKPOINT)
def checkpoint(checkpoint_id: str) -> str:
    found = state().store.checkpoints.get(checkpoint_id, caller())
    is_inference = found.kind is CheckpointKind.INFERENCE
    parts = {part: downloads(found, part)["data"] for part in found.files} if is_inference else {}
    return render_template("console/checkpoint.html", checkpoint=found, parts=parts)


@console.get(f"{CHECKPOINT}/delete")
def ask_to_delete(checkpoint_id: str) -> str:
    found = state().store.checkpoints.get(checkpoint_id, caller())
    return render_template(
        "console/confirm.html",
        question=f"Delete {found.model_name}?",
        meaning="Its files go. Sessions that went on from it are not affected.",
        verb="Delete the checkpoint",
        action=url_for("console.delete", checkpoint_id=checkpoint_id),
        back=url_for("console.checkpoint", checkpoint_id=checkpoint_id),
    )


@console.post(f"{CHECKPOINT}/delete")
def delete(checkpoint_id: str) -> Response:
    found = state().store.checkpoints.get(checkpoint_id, caller())
    state().store.checkpoints.delete(checkpoint_id, caller())
    return redirect(url_for("console.session", session_id=found.session_id))
