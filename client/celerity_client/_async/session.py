"""A training session: each method answers at once with an operation, in whose order the session's weights change."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from celerity_client._async.http import AsyncHttp
from celerity_client._async.operation import AsyncOperation
from celerity_client.results import Json, Sampled, Saved, Stepped, Trained
from celerity_client.training_data import model_input

T = TypeVar("T")


class AsyncSession:
    def __init__(self, http: AsyncHttp, path: str, timeout_seconds: float | None = None) -> None:
        self._http = http
        self._timeout_seconds = timeout_seconds
        self.path = path

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    def within(self, seconds: float) -> "AsyncSession":
        """The same session, but each operation asked of it fails with TIMEOUT when it runs for longer than this."""
        return AsyncSession(self._http, self.path, seconds)

    async def sample(self, prompt: Sequence[int], num_samples: int = 1, **params: Any) -> AsyncOperation[Sampled]:
        """Completions of a prompt of token ids; `params` are sampling_params: max_tokens, temperature, seed, ..."""
        body = {"prompt": model_input(prompt), "num_samples": num_samples, "sampling_params": params}
        return await self._submit("sample", body, Sampled.from_json)

    async def grpo(self, examples: Sequence[Json], **params: Any) -> AsyncOperation[Trained]:
        """Adds the gradient of the GRPO loss over `grpo_example`s; `params` are grpo_params."""
        return await self.forward_backward(examples, {"type": "LOSS_TYPE_GRPO", "grpo_params": params})

    async def cross_entropy(self, examples: Sequence[Json]) -> AsyncOperation[Trained]:
        """Adds the gradient of the cross-entropy over `example`s."""
        return await self.forward_backward(examples, {"type": "LOSS_TYPE_CROSS_ENTROPY"})

    async def forward_backward(self, examples: Sequence[Json], loss: Json) -> AsyncOperation[Trained]:
        return await self._submit("forward-backward", {"samples": list(examples), "loss": loss}, Trained.from_json)

    async def optim_step(self, learning_rate: float = 1e-4, **adamw: float) -> AsyncOperation[Stepped]:
        return await self._submit(
            "optim-step", {"learning_rate": learning_rate, "adamw_params": adamw}, Stepped.from_json
        )

    async def save(self, kind: str) -> AsyncOperation[Saved]:
        """A checkpoint: "training" to go on from, "inference" to be loaded elsewhere."""
        return await self._submit(f"{kind}-checkpoint", {}, Saved.from_json)

    async def log(self, name: str, step: int, value: float) -> None:
        """A number of your own, to be seen in the console."""
        await self._http.call("POST", f"{self.path}:log", {"name": name, "step": step, "value": value})

    async def read(self) -> Json:
        return dict(await self._http.call("GET", self.path))

    async def stop(self) -> Json:
        return dict(await self._http.call("POST", f"{self.path}:stop"))

    async def _submit(self, kind: str, body: Json, from_json: Callable[[Json], T]) -> AsyncOperation[T]:
        asked = body if self._timeout_seconds is None else {**body, "timeout_seconds": self._timeout_seconds}
        accepted = await self._http.call("POST", f"{self.path}:{kind}", asked)
        return AsyncOperation(self._http, f"{self.path}/operations/{kind}/{accepted['operation_id']}", from_json)
