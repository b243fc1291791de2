"""The API as a test tells its stories: one method per call, results as plain JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from testing.bodies import SESSIONS, Json, sample_body, step_body, train_body, whole


class Session:
    """One training session."""

    def __init__(
        self, http: httpx.Client, base_model: str = "tiny", checkpoint_id: str | None = None, **lora: Any
    ) -> None:
        self.http = http
        body: Json = {"base_model": base_model, "checkpoint_id": checkpoint_id}
        if lora:
            body["lora_config"] = lora
        created = http.post(SESSIONS, json=body)
        assert created.status_code == 200, created.text
        self.path = f"{SESSIONS}/{created.json()['session_id']}"

    @classmethod
    def known(cls, http: httpx.Client, session_id: str) -> "Session":
        """One that is there."""
        session = cls.__new__(cls)
        session.http, session.path = http, f"{SESSIONS}/{session_id}"
        return session

    def submit(self, kind: str, body: Json) -> str:
        """The path of an accepted operation."""
        answer = self.http.post(f"{self.path}:{kind}", json=body)
        assert answer.status_code == 200, answer.text
        return f"{self.path}/operations/{kind}/{answer.json()['operation_id']}"

    def end(self, path: str) -> Json:
        """The operation, once it has ended."""
        while True:
            operation: Json = self.http.get(path, headers={"Prefer": "wait=20"}).json()
            if operation["status"] not in ("TRAINING_OPERATION_STATUS_PENDING", "TRAINING_OPERATION_STATUS_RUNNING"):
                return operation

    def result(self, path: str) -> Json:
        """The data of an operation that must have COMPLETED."""
        operation = self.end(path)
        assert operation["status"] == "TRAINING_OPERATION_STATUS_COMPLETED", operation
        data: Json = operation["data"]
        return data

    def error(self, path: str) -> Json:
        """The error of an operation that must have FAILED."""
        operation = self.end(path)
        assert operation["status"] == "TRAINING_OPERATION_STATUS_FAILED", operation
        error: Json = operation["error"]
        return error

    def read(self) -> Json:
        session: Json = self.http.get(self.path).json()
        return session

    def sample(self, tokens: Sequence[int], num_samples: int = 1, **params: Any) -> list[Json]:
        path = self.submit("sample", sample_body(tokens, num_samples, **params))
        sequences: list[Json] = self.result(path)["sequences"]
        return sequences

    def train(self, samples: list[Json], loss: str = "LOSS_TYPE_GRPO", **params: Any) -> Json:
        return self.result(self.submit("forward-backward", train_body(samples, loss, **params)))

    def step(self, learning_rate: float = 1e-4, **adamw: float) -> Json:
        return self.result(self.submit("optim-step", step_body(learning_rate, **adamw)))

    def save(self, kind: str) -> str:
        """The id of a new checkpoint, "training" or "inference"."""
        checkpoint_id: str = self.result(self.submit(f"{kind}-checkpoint", {}))["checkpoint_id"]
        return checkpoint_id

    def logprobs(self, sequence: Sequence[int]) -> list[float]:
        """The logprobs of each token of `sequence` after its first, read off the loss alone:
        with one token unmasked, the cross-entropy is minus its logprob."""
        paths = []
        for place in range(1, len(sequence)):
            mask = [int(entry == place) for entry in range(len(sequence))]
            body = train_body([whole(sequence, mask)], "LOSS_TYPE_CROSS_ENTROPY")
            paths.append(self.submit("forward-backward", body))
        return [-self.result(path)["loss"] for path in paths]


def trained_session(http: httpx.Client, steps: int) -> tuple[Session, list[Json]]:
    """A session after some steps with dropout, and what it answers to a seeded sample."""
    session = Session(http, dropout=0.1)
    for _ in range(steps):
        session.train([whole([1, 2, 3, 4, 5])], "LOSS_TYPE_CROSS_ENTROPY")
        session.step(0.05)
    return session, session.sample([1, 2], 2, max_tokens=6, seed=1)


def download(http: httpx.Client, checkpoint_id: str, variant: str, folder: Path) -> Path:
    """All files of an inference checkpoint, each of the size that was stated."""
    folder.mkdir()
    answer = http.get(f"/v1/rl/checkpoints/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_{variant}")
    assert answer.status_code == 200, answer.text
    for file in answer.json()["data"]:
        content = httpx.get(file["url"]).raise_for_status().content
        assert len(content) == file["size"]
        (folder / file["filename"]).write_bytes(content)
    return folder


def is_ready(http: httpx.Client) -> bool:
    """False where nobody answers, too."""
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def log_of(data_dir: Path) -> str:
    return (data_dir / "stack.log").read_text()
