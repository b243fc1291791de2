# Generated from _async/ by client/generate_sync.py.
"""The server, from the outside."""

from types import TracebackType
from typing import Any

import httpx

from celerity_client._sync.http import Http
from celerity_client._sync.session import Session
from celerity_client.results import Json

SESSIONS = "/v1/rl/training-sessions"
CHECKPOINTS = "/v1/rl/checkpoints"
VARIANT = "CHECKPOINT_VARIANT_"


class Client:
    """`key` is an API key, where the server has any. Calls are repeated for `retry_seconds` while the server is away or
    has no room. `transport` is httpx's, and stands for the network in tests."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        retry_seconds: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = Http(url, key, retry_seconds, transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def create_session(self, base_model: str, checkpoint_id: str | None = None, **lora: Any) -> Session:
        """A new session; `lora` are rank, alpha and dropout."""
        body = {"base_model": base_model, "checkpoint_id": checkpoint_id, "lora_config": lora}
        created = self._http.call("POST", SESSIONS, body)
        return self.session(created["session_id"])

    def session(self, session_id: str) -> Session:
        """One that is there."""
        return Session(self._http, f"{SESSIONS}/{session_id}")

    def sessions(self, limit: int = 20) -> list[Json]:
        return list(self._http.call("GET", f"{SESSIONS}?limit={limit}"))

    def operations(self, session_id: str, limit: int = 20) -> list[Json]:
        return list(self._http.call("GET", f"{SESSIONS}/{session_id}/operations?limit={limit}"))

    def cancel(self, session_id: str, operation_id: str) -> Json:
        return dict(self._http.call("POST", f"{SESSIONS}/{session_id}/operations/{operation_id}:cancel"))

    def checkpoints(self, limit: int = 20) -> list[Json]:
        return list(self._http.call("GET", f"{CHECKPOINTS}?limit={limit}"))

    def files(self, checkpoint_id: str, variant: str) -> list[Json]:
        """Names, sizes and URLs of an inference checkpoint's files; `variant` is "adapter" or "merged"."""
        query = f"variant={VARIANT}{variant.upper()}"
        download = self._http.call("GET", f"{CHECKPOINTS}/{checkpoint_id}/download?{query}")
        return list(download["data"])

    def delete_checkpoint(self, checkpoint_id: str) -> None:
        self._http.call("DELETE", f"{CHECKPOINTS}/{checkpoint_id}")

    def models(self) -> list[Json]:
        return list(self._http.call("GET", "/v1/models"))

    def workers(self) -> list[Json]:
        return list(self._http.call("GET", "/v1/workers"))
