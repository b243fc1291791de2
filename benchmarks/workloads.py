"""The work that product and peers are given, as plain data: a peer's environment holds nothing of the product's."""

from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

SEED = 20_260_201
RANK, ALPHA = 16, 32
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# Of each sampled token, where a workload trains on tokens that nobody sampled.
GENERATOR_LOGPROB = -2.0
RATIO_LOW, RATIO_HIGH, HORIZON = 0.8, 1.28, 1024
LEARNING_RATE = 1e-5


@dataclass(frozen=True)
class Request:
    """`num_samples` completions of exactly `max_tokens` tokens each, sampled at temperature 1 with logprobs."""

    prompt: list[int]
    max_tokens: int
    num_samples: int = 1
    session: int = 0


@dataclass(frozen=True)
class Sampling:
    """Requests that arrive at once. Its tokens are the useful ones: those of completions."""

    name: str
    requests: list[Request]

    @property
    def tokens(self) -> int:
        return sum(request.num_samples * request.max_tokens for request in self.requests)

    @property
    def sequences(self) -> int:
        return sum(request.num_samples for request in self.requests)


@dataclass(frozen=True)
class Sample:
    """A sequence to train on: entry t of `tokens` predicts entry t + 1, and is trained from `trained_from` on."""

    tokens: list[int]
    advantage: float
    trained_from: int = 0
    session: int = 0

    @property
    def length(self) -> int:
        return len(self.tokens) - 1


@dataclass(frozen=True)
class Training:
    """One GRPO forward-backward and optimizer step for each session that has samples. Every position counts."""

    name: str
    samples: list[Sample]
    rank: int = RANK

    @property
    def tokens(self) -> int:
        return sum(sample.length for sample in self.samples)

    @property
    def sessions(self) -> list[int]:
        return sorted({sample.session for sample in self.samples})

    def of(self, session: int) -> list[Sample]:
        return [sample for sample in self.samples if sample.session == session]


Workload = Sampling | Training


def to_json(workload: Workload) -> dict[str, Any]:
    return {"kind": type(workload).__name__, **asdict(workload)}


def from_json(data: dict[str, Any]) -> Workload:
    kind, rest = data["kind"], {key: value for key, value in data.items() if key != "kind"}
    if kind == "Sampling":
        return Sampling(**rest | {"requests": [Request(**request) for request in rest["requests"]]})
    return Training(**rest | {"samples": [Sample(**sample) for sample in rest["samples"]]})


class Writer:
    """Writes workloads from one stretch of text, cut at random places; the same seed cuts the same."""

    def __init__(self, text: list[int], seed: int = SEED) -> None:
        self._text, self._random = text, Random(seed)

    def tokens(self, length: int) -> list[int]:
        start = self._random.randrange(len(self._text))
        return [self._text[(start + offset) % len(self._text)] for offset in range(length)]

    def batch(
        self, sequences: int, *, prompt: int = 32, max_tokens: int = 64, sessions: int = 1, name: str = ""
    ) -> Sampling:
        """Sequences of one length with a prompt each, dealt out to the sessions in turn."""
        requests = [Request(self.tokens(prompt), max_tokens, session=row % sessions) for row in range(sequences)]
        return Sampling(name or f"{sequences} sequence{'s' * (sequences > 1)}", requests)

    def rollout(self, prompts: int = 8, num_samples: int = 8) -> Sampling:
        """Prompts of 16..128 tokens, each with samples of its own length of 8..64."""
        lengths = _spread(16, 128, prompts)
        budgets = _spread(8, 64, prompts)
        self._random.shuffle(budgets)
        requests = [Request(self.tokens(a), b, num_samples) for a, b in zip(lengths, budgets, strict=True)]
        return Sampling("rollout", requests)

    def training(self, lengths: list[int], *, sessions: int = 1, rank: int = RANK, name: str = "") -> Training:
        samples = [
            Sample(self.tokens(length + 1), self._random.gauss(0, 1), session=row % sessions)
            for row, length in enumerate(lengths)
        ]
        return Training(name or f"{len(lengths)} sequences", samples, rank)

    def groups(self, prompt: int = 256, completions: int = 8, length: int = 32) -> tuple[Training, Training]:
        """Completions of one prompt, trained on the completions alone; and as many tokens without a common prompt."""
        samples = [
            Sample(self.tokens(prompt + length), self._random.gauss(0, 1), trained_from=prompt - 1)
            for _ in range(completions)
        ]
        shared = samples[0].tokens[:prompt]
        alike = [replace(sample, tokens=shared + sample.tokens[prompt:]) for sample in samples]
        return Training("common prompt", alike), Training("prompts of their own", samples)


def ragged_lengths(sequences: int = 32, shortest: int = 64, longest: int = 256, total: int = 4910) -> list[int]:
    """Lengths from shortest to longest, both of them there, that sum to `total`; in no order."""
    random = Random(SEED)
    lengths = [shortest, longest, *(random.randint(shortest, longest) for _ in range(sequences - 2))]
    while (excess := sum(lengths) - total) != 0:
        row = random.randrange(2, sequences)
        lengths[row] = min(longest, max(shortest, lengths[row] - (1 if excess > 0 else -1)))
    random.shuffle(lengths)
    return lengths


def _spread(first: int, last: int, count: int) -> list[int]:
    return [first + (last - first) * step // (count - 1) for step in range(count)]
