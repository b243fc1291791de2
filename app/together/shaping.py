"""Preparing a model for FP4 inference, which this server does not do."""

from typing import Any, NoReturn

from marshmallow import EXCLUDE, fields

from app.together.blueprint import Blueprint
from schemas.base import AnswerSchema, RequestSchema
from schemas.problems import refusal
from store.errors import NotFoundError

shaping = Blueprint(
    "together_shaping",
    __name__,
    url_prefix="/together/v1/shaping",
    description="FP4 preparation: not offered.",
)


class FourBitSchema(RequestSchema):
    inputs = fields.Dict(required=True, metadata={"description": "Whatever it is, the answer is a 400."})

    class Meta:
        unknown = EXCLUDE


class JobsSchema(AnswerSchema):
    data = fields.List(fields.Dict(), required=True, metadata={"description": "Always empty."})
    object = fields.String(required=True, metadata={"enum": ["list"], "description": "Always list."})


@shaping.route("/prepare-for-fp4-inference", methods=("POST",))
@shaping.arguments(FourBitSchema)
@shaping.response(200, JobsSchema)
def prepare_for_fp4_inference(_: dict[str, Any]) -> NoReturn:
    """Refuse to prepare a model for FP4 inference"""
    raise _not_offered()


@shaping.route("/prepare-for-fp4-inference/estimate", methods=("POST",))
@shaping.arguments(FourBitSchema)
@shaping.response(200, JobsSchema)
def estimate_fp4_preparation(_: dict[str, Any]) -> NoReturn:
    """Refuse to estimate that"""
    raise _not_offered()


@shaping.route("")
@shaping.response(200, JobsSchema)
def list_shaping_jobs() -> dict[str, Any]:
    """List shaping jobs, of which there are none"""
    return {"data": [], "object": "list"}


@shaping.route("/<id:job_id>")
@shaping.response(200, JobsSchema)
def get_shaping_job(job_id: str) -> NoReturn:
    """Read a shaping job, of which there are none"""
    raise NotFoundError(f"no such shaping job: {job_id}")


@shaping.route("/<id:job_id>/cancel", methods=("POST",))
@shaping.response(200, JobsSchema)
def cancel_shaping_job(job_id: str) -> NoReturn:
    """Cancel a shaping job, of which there are none"""
    raise NotFoundError(f"no such shaping job: {job_id}")


@shaping.route("/<id:job_id>/events")
@shaping.response(200, JobsSchema)
def list_shaping_job_events(job_id: str) -> NoReturn:
    """Read the events of a shaping job, of which there are none"""
    raise NotFoundError(f"no such shaping job: {job_id}")


def _not_offered() -> Exception:
    return refusal("inputs", "FP4 preparation is not offered by this server; download the merged checkpoint instead")
