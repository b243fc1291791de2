"""One checkpoint: its files to download, and its deletion after a question."""

from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.auth import caller
from app.console.blueprint import PREFIX, console
from app.links import downloads
from app.state import state
from contract.checkpoint import CheckpointKind

CHECKPOINT = f"{PREFIX}/checkpoints/<id:checkpoint_id>"


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
