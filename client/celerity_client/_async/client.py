"""The server, from the outside."""

from types import TracebackType
from typing import Any

import httpx

from celerity_client._async.http import AsyncHttp
from celerity_client._async.session import AsyncSession
from celerity_client.results import Json

SESSIONS = "/v1/rl/training-sessions"
CHECKPOINTS = "/v1/rl/checkpoints"
VARIANT = "CHECKPOINT_VARIANT_"


class AsyncClient:
    """`key` is an API key, where the server has any. Calls are repeated for `retry_seconds` while the server is away or
    has no room. `transport` is httpx's, and stands for the network in tests."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        retry_seconds: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = AsyncHttp(url, key, retry_seconds, transport)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def create_session(self, base_model: str, checkpoint_id: str | None = None, **lora: Any) -> AsyncSession:
        """A new session; `lora` are rank, alpha and dropout."""
        body = {"base_model": base_model, "checkpoint_id": checkpoint_id, "lora_config": lora}
        created = await self._http.call("POST", SESSIONS, body)
        return self.session(created["session_id"])

    def session(self, session_id: str) -> AsyncSession:
        """One that is there."""
        return AsyncSession(self._http, f"{SESSIONS}/{session_id}")

    async def sessions(self, limit: int = 20) -> list[Json]:
        return list(await self._http.call("GET", f"{SESSIONS}?limit={limit}"))

    async def operations(self, session_id: str, limit: int = 20) -> list[Json]:
        return list(await self._http.call("GET", f"{SESSIONS}/{session_id}/operations?limit={limit}"))

    async def cancel(self, session_id: str, operation_id: str) -> Json:
        return dict(await self._http.call("POST", f"{SESSIONS}/{session_id}/operations/{operation_id}:cancel"))

    async def checkpoints(self, limit: int = 20) -> list[Json]:
        return list(await self._http.call("GET", f"{CHECKPOINTS}?limit={limit}"))

    async def files(self, checkpoint_id: str, variant: str) -> list[Json]:
        """Names, sizes and URLs of an inference checkpoint's files; `variant` is "adapter" or "merged"."""
        query = f"variant={VARIANT}{variant.upper()}"
        download = await self._http.call("GET", f"{CHECKPOINTS}/{checkpoint_id}/download?{query}")
        return list(download["data"])

    async def delete_checkpoint(self, checkpoint_id: str) -> None:
        await self._http.call("DELETE", f"{CHECKPOINTS}/{checkpoint_id}")

    async def models(self) -> list[Json]:
        return list(await self._http.call("GET", "/v1/models"))

    async def workers(self) -> list[Json]:
        return list(await self._http.call("GET", "/v1/workers"))
