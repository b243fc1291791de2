"""Model resources: what sessions over one base model are attached to, and expire with."""

from enum import StrEnum

import msgspec

from domain.optim_step import Muon


class ModelResourcesStatus(StrEnum):
    READY = "READY"
    STOPPED = "STOPPED"


class ModelResourcesSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What resources are made for; fixed for their whole life. `inactive_timeout` is in seconds."""

    base_model: str
    owner: str
    inactive_timeout: int
    generator_replicas: int
    muon: Muon | None = None


class ModelResources(msgspec.Struct, frozen=True, kw_only=True):
    """Times are Unix seconds by the store's clock. `expires_at` is None once they are stopped."""

    id: str
    spec: ModelResourcesSpec
    status: ModelResourcesStatus
    created_at: float
    updated_at: float
    expires_at: float | None
