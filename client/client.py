"""The server, from the outside."""

from types import TracebackType
from typing import Any

import httpx2

from client.session import Session
from client.transport import Json, Transport

SESSIONS = "/v1/rl/training-sessions"
CHECKPOINTS = "/v1/rl/checkpoints"
VARIANT = "CHECKPOINT_VARIANT_"


class Client:
    """`key` is an API key, where the server has any."""

    def __init__(
        self, url: str, key: str = "", *, patience: float = 60.0, handler: httpx2.BaseTransport | None = None
    ) -> None:
        self._transport = Transport(url, key, patience, handler)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def create_session(self, base_model: str, checkpoint_id: str | None = None, **lora: Any) -> Session:
        """A new session; `lora` are rank, alpha and dropout."""
        body = {"base_model": base_model, "checkpoint_id": checkpoint_id, "lora_config": lora}
        return self.session(self._transport.call("POST", SESSIONS, body)["session_id"])

    def session(self, session_id: str) -> Session:
        """One that is there."""
        return Session(self._transport, f"{SESSIONS}/{session_id}")

    def sessions(self, limit: int = 20) -> list[Json]:
        return list(self._transport.call("GET", f"{SESSIONS}?limit={limit}"))

    def operations(self, session_id: str, limit: int = 20) -> list[Json]:
        return list(self._transport.call("GET", f"{SESSIONS}/{session_id}/operations?limit={limit}"))

    def cancel(self, session_id: str, operation_id: str) -> Json:
        return dict(self._transport.call("POST", f"{SESSIONS}/{session_id}/operations/{operation_id}:cancel"))

    def checkpoints(self, limit: int = 20) -> list[Json]:
        return list(self._transport.call("GET", f"{CHECKPOINTS}?limit={limit}"))

    def files(self, checkpoint_id: str, variant: str) -> list[Json]:
        """Names, sizes and URLs of an inference checkpoint's files; `variant` is "adapter" or "merged"."""
        query = f"variant={VARIANT}{variant.upper()}"
        return list(self._transport.call("GET", f"{CHECKPOINTS}/{checkpoint_id}/download?{query}")["data"])

    def delete_checkpoint(self, checkpoint_id: str) -> None:
        self._transport.call("DELETE", f"{CHECKPOINTS}/{checkpoint_id}")

    def models(self) -> list[Json]:
        return list(self._transport.call("GET", "/v1/models"))

    def workers(self) -> list[Json]:
        return list(self._transport.call("GET", "/v1/workers"))
