"""Checkpoints, which this server does not offer yet: every call is a 501 that says so."""

from http import HTTPStatus
from typing import Any, NoReturn

from werkzeug.exceptions import NotImplemented as NotOffered

from app.blueprint import Blueprint
from app.state import state
from schemas.checkpoints import DownloadSchema
from schemas.pages import PageSchema

checkpoints = Blueprint("checkpoints", __name__, url_prefix="/v1/rl", description="Saved adapters; not offered yet.")


def not_offered() -> NoReturn:
    raise NotOffered


@checkpoints.route("/training-sessions/<id:session_id>:training-checkpoint", methods=("POST",))
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def create_training_checkpoint(session_id: str) -> NoReturn:
    """Save adapter, optimizer state and step"""
    state().store.sessions.get(session_id)
    not_offered()


@checkpoints.route("/training-sessions/<id:session_id>:inference-checkpoint", methods=("POST",))
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def create_inference_checkpoint(session_id: str) -> NoReturn:
    """Save the adapter for inference"""
    state().store.sessions.get(session_id)
    not_offered()


@checkpoints.route("/training-sessions/<id:session_id>/operations/training-checkpoint/<id:operation_id>")
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def get_training_checkpoint_operation(session_id: str, operation_id: str) -> NoReturn:  # noqa: ARG001
    """Read a training-checkpoint operation"""
    state().store.sessions.get(session_id)
    not_offered()


@checkpoints.route("/training-sessions/<id:session_id>/operations/inference-checkpoint/<id:operation_id>")
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def get_inference_checkpoint_operation(session_id: str, operation_id: str) -> NoReturn:  # noqa: ARG001
    """Read an inference-checkpoint operation"""
    state().store.sessions.get(session_id)
    not_offered()


@checkpoints.route("/checkpoints")
@checkpoints.arguments(PageSchema, location="query")
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def list_checkpoints(_: dict[str, Any]) -> NoReturn:
    """List checkpoints"""
    not_offered()


@checkpoints.route("/checkpoints/<id:checkpoint_id>")
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def get_checkpoint(checkpoint_id: str) -> NoReturn:  # noqa: ARG001
    """Read a checkpoint"""
    not_offered()


@checkpoints.route("/checkpoints/<id:checkpoint_id>", methods=("DELETE",))
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def delete_checkpoint(checkpoint_id: str) -> NoReturn:  # noqa: ARG001
    """Delete a checkpoint"""
    not_offered()


@checkpoints.route("/checkpoints/<id:checkpoint_id>/download")
@checkpoints.arguments(DownloadSchema, location="query")
@checkpoints.refuses(HTTPStatus.NOT_IMPLEMENTED)
def download_checkpoint(_: dict[str, Any], checkpoint_id: str) -> NoReturn:  # noqa: ARG001
    """Read where a checkpoint's files can be had"""
    not_offered()
