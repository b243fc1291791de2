"""The workers, for whoever runs the server."""

from marshmallow import fields

from schemas.base import AnswerSchema
from schemas.operations import identifier


class HeldSessionSchema(AnswerSchema):
    session_id = identifier("A session of the caller's.")
    epoch = fields.Integer(
        required=True,
        metadata={"description": "How many workers have held it, this one included.", "examples": [1]},
    )


class WorkerSchema(AnswerSchema):
    worker_id = fields.String(
        required=True, metadata={"description": "New with each start.", "examples": ["gpu-host-1234-5f0c9a7e"]}
    )
    device = fields.String(required=True, metadata={"examples": ["cuda:0"]})
    base_models = fields.List(
        fields.String(metadata={"examples": ["HuggingFaceTB/SmolLM2-135M-Instruct"]}),
        required=True,
        metadata={"description": "What it has at hand."},
    )
    heartbeat_age = fields.Float(
        required=True,
        metadata={"description": "Seconds since it last said that it is alive.", "examples": [0.4]},
    )
    capacity = fields.Integer(required=True, metadata={"description": "Most sessions it may hold.", "examples": [256]})
    session_count = fields.Integer(
        required=True, metadata={"description": "Sessions that it holds, whoever made them.", "examples": [3]}
    )
    resident_count = fields.Integer(
        required=True,
        metadata={"description": "Sessions that are in its memory; the others are parked.", "examples": [2]},
    )
    resident_bytes = fields.Integer(
        required=True,
        metadata={"description": "Memory of those, gradients and optimizer states included.", "examples": [78151680]},
    )
    free_bytes = fields.Integer(
        required=True, metadata={"description": "Memory that its device has left.", "examples": [8589934592]}
    )
    sessions = fields.List(
        fields.Nested(HeldSessionSchema),
        required=True,
        metadata={"description": "Those of the caller that it holds."},
    )
