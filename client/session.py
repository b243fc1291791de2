"""A training session: each method answers at once with an operation, in whose order the session's weights change."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from client.operation import Operation
from client.results import Sampled, Saved, Stepped, Trained
from client.transport import Json, Transport

T = TypeVar("T", bound=msgspec.Struct)


class Session:
    def __init__(self, transport: Transport, path: str, timeout_seconds: float | None = None) -> None:
        self._transport = transport
        self._timeout_seconds = timeout_seconds
        self.path = path

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    def within(self, seconds: float) -> "Session":
        """The same session, but each operation asked of it fails with TIMEOUT when it runs for longer than this."""
        return Session(self._transport, self.path, seconds)

    def sample(self, prompt: Sequence[int], num_samples: int = 1, **params: Any) -> Operation[Sampled]:
        """Completions of a prompt of token ids; `params` are sampling_params: max_tokens, temperature, seed, ..."""
        body = {"prompt": model_input(prompt), "num_samples": num_samples, "sampling_params": params}
        return self._submit("sample", body, Sampled)

    def grpo(self, samples: Sequence[Json], **params: Any) -> Operation[Trained]:
        """Adds the gradient of the GRPO loss over `grpo_sample`s; `params` are grpo_params."""
        return self.forward_backward(samples, {"type": "LOSS_TYPE_GRPO", "grpo_params": params})

    def cross_entropy(self, samples: Sequence[Json]) -> Operation[Trained]:
        """Adds the gradient of the cross-entropy over `sample`s."""
        return self.forward_backward(samples, {"type": "LOSS_TYPE_CROSS_ENTROPY"})

    def forward_backward(self, samples: Sequence[Json], loss: Json) -> Operation[Trained]:
        return self._submit("forward-backward", {"samples": list(samples), "loss": loss}, Trained)

    def optim_step(self, learning_rate: float = 1e-4, **adamw: float) -> Operation[Stepped]:
        return self._submit("optim-step", {"learning_rate": learning_rate, "adamw_params": adamw}, Stepped)

    def save(self, kind: str) -> Operation[Saved]:
        """A checkpoint: "training" to go on from, "inference" to be loaded elsewhere."""
        return self._submit(f"{kind}-checkpoint", {}, Saved)

    def log(self, name: str, step: int, value: float) -> None:
        """A number of your own, to be seen in the console."""
        self._transport.call("POST", f"{self.path}:log", {"name": name, "step": step, "value": value})

    def read(self) -> Json:
        return dict(self._transport.call("GET", self.path))

    def stop(self) -> Json:
        return dict(self._transport.call("POST", f"{self.path}:stop"))

    def _submit(self, kind: str, body: Json, into: type[T]) -> Operation[T]:
        asked = body if self._timeout_seconds is None else {**body, "timeout_seconds": self._timeout_seconds}
        operation_id = self._transport.call("POST", f"{self.path}:{kind}", asked)["operation_id"]
        return Operation(self._transport, f"{self.path}/operations/{kind}/{operation_id}", into)


def model_input(tokens: Sequence[int]) -> Json:
    return {"chunks": [{"encoded_text": {"tokens": list(tokens)}}]}


def sample(tokens: Sequence[int], mask: Sequence[int]) -> Json:
    """A whole sequence to train on, with a 1 in the mask for each token that counts."""
    return {"model_input": model_input(tokens), "loss_inputs": {"loss_mask": {"data": list(mask)}}}


def grpo_sample(prompt: Sequence[int], tokens: Sequence[int], logprobs: Sequence[float], advantage: float) -> Json:
    """A completion that was sampled, every token of it with the same advantage. The mask leaves the prompt out."""
    before = len(prompt)
    made = sample([*prompt, *tokens], [0] * before + [1] * len(tokens))
    made["loss_inputs"]["grpo_inputs"] = {
        "advantages": {"data": [0.0] * before + [advantage] * len(tokens)},
        "generator_logprobs": {"data": [0.0] * before + list(logprobs)},
    }
    return made
