"""Checkpoints: which of their files are asked for."""

from schemas.base import QuerySchema
from schemas.fields import Choice

VARIANT_PREFIX = "CHECKPOINT_VARIANT_"


class DownloadSchema(QuerySchema):
    variant = Choice(
        {f"{VARIANT_PREFIX}ADAPTER": "adapter", f"{VARIANT_PREFIX}MERGED": "merged"},
        required=True,
        description="The adapter alone, or the whole model with the adapter merged into it.",
    )
