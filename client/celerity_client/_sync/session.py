# Generated from _async/ by client/generate_sync.py.
"""A training session: each method answers at once with an operation, in whose order the session's weights change."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from celerity_client._sync.http import Http
from celerity_client._sync.operation import Operation
from celerity_client.results import Json, Sampled, Saved, Stepped, Trained
from celerity_client.training_data import model_input

T = TypeVar("T")


class Session:
    def __init__(self, http: Http, path: str, timeout_seconds: float | None = None) -> None:
        self._http = http
        self._timeout_seconds = timeout_seconds
        self.path = path

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    def within(self, seconds: float) -> "Session":
        """The same session, but each operation asked of it fails with TIMEOUT when it runs for longer than this."""
        return Session(self._http, self.path, seconds)

    def sample(self, prompt: Sequence[int], num_samples: int = 1, **params: Any) -> Operation[Sampled]:
        """Completions of a prompt of token ids; `params` are sampling_params: max_tokens, temperature, seed, ..."""
        body = {"prompt": model_input(prompt), "num_samples": num_samples, "sampling_params": params}
        return self._submit("sample", body, Sampled.from_json)

    def grpo(self, examples: Sequence[Json], **params: Any) -> Operation[Trained]:
        """Adds the gradient of the GRPO loss over `grpo_example`s; `params` are grpo_params."""
        return self.forward_backward(examples, {"type": "LOSS_TYPE_GRPO", "grpo_params": params})

    def cross_entropy(self, examples: Sequence[Json]) -> Operation[Trained]:
        """Adds the gradient of the cross-entropy over `example`s."""
        return self.forward_backward(examples, {"type": "LOSS_TYPE_CROSS_ENTROPY"})

    def forward_backward(self, examples: Sequence[Json], loss: Json) -> Operation[Trained]:
        return self._submit("forward-backward", {"samples": list(examples), "loss": loss}, Trained.from_json)

    def optim_step(self, learning_rate: float = 1e-4, **adamw: float) -> Operation[Stepped]:
        return self._submit("optim-step", {"learning_rate": learning_rate, "adamw_params": adamw}, Stepped.from_json)

    def save(self, kind: str) -> Operation[Saved]:
        """A checkpoint: "training" to go on from, "inference" to be loaded elsewhere."""
        return self._submit(f"{kind}-checkpoint", {}, Saved.from_json)

    def log(self, name: str, step: int, value: float) -> None:
        """A number of your own, to be seen in the console."""
        self._http.call("POST", f"{self.path}:log", {"name": name, "step": step, "value": value})

    def read(self) -> Json:
        return dict(self._http.call("GET", self.path))

    def stop(self) -> Json:
        return dict(self._http.call("POST", f"{self.path}:stop"))

    def _submit(self, kind: str, body: Json, from_json: Callable[[Json], T]) -> Operation[T]:
        asked = body if self._timeout_seconds is None else {**body, "timeout_seconds": self._timeout_seconds}
        accepted = self._http.call("POST", f"{self.path}:{kind}", asked)
        return Operation(self._http, f"{self.path}/operations/{kind}/{accepted['operation_id']}", from_json)
