"""GRPO: a small language model learns to answer sums.

One step of the loop: ask every question several times (`sample`), score each reply by a rule, turn
the scores of a question's replies into advantages, add the gradient of the GRPO loss
(`forward-backward`), and step the optimizer (`optim-step`). `python -m examples.demo` runs it.
"""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, pstdev
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from celerity_client import Session, grpo_example
from celerity_client.progress import Bar
from celerity_client.results import Sequence, Trained
from examples.pace import SLOW, Size, choose

Sum = tuple[int, int]
SUMS: list[Sum] = [(a, b) for a in range(10) for b in range(10)]
MAX_TOKENS = 4


class Reply(NamedTuple):
    prompt: list[int]
    sequence: Sequence
    reward: float


class Outcome(NamedTuple):
    """Accuracies are greedy ones, on sums that no step asked."""

    size: Size
    rewards: list[float]
    accuracy_before: float
    accuracy_after: float
    tokens_sampled: int
    tokens_trained: int

    @property
    def reward_first(self) -> float:
        return mean(self.rewards[: self._few])

    @property
    def reward_last(self) -> float:
        return mean(self.rewards[-self._few :])

    @property
    def has_risen(self) -> bool:
        return self.reward_last > self.reward_first

    @property
    def _few(self) -> int:
        """So many steps at each end; three, where there are enough."""
        return max(1, min(3, len(self.rewards) // 4))


def load_tokenizer(name: str) -> Tokenizer:
    file = Path(name) / "tokenizer.json"
    return Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)


def question(a: int, b: int) -> str:
    """After an example, which shows how to answer."""
    return f"1 + 1 = 2\n{a} + {b} ="


def reward(text: str, a: int, b: int) -> float:
    """1 for a reply whose last number is the sum."""
    return float(re.findall(r"\d+", text)[-1:] == [str(a + b)])


def advantages(group: list[Reply]) -> list[float]:
    """How much better each reply to a question is than the others, in standard deviations."""
    rewards = [reply.reward for reply in group]
    return [(each - mean(rewards)) / (pstdev(rewards) + 1e-4) for each in rewards]


def _example(reply: Reply, advantage: float) -> dict[str, Any]:
    return grpo_example(reply.prompt, reply.sequence.tokens, reply.sequence.logprobs, advantage)


class Loop:
    """`bar` moves with each reply that was sampled and with each that was trained on."""

    def __init__(self, session: Session, tokenizer: str, bar: Bar, *, learning_rate: float, seed: int) -> None:
        """`tokenizer` is a model's directory or hub id."""
        self._session, self._bar = session, bar
        self._tokenizer = load_tokenizer(tokenizer)
        self._learning_rate = learning_rate
        self._rng = random.Random(seed)
        self.tokens_sampled = self.tokens_trained = 0

    def run(self, seconds: float, size: Size | None = None) -> Outcome:
        """Takes `seconds` or less, but does a step. Without a `size`, the first few replies tell what fits."""
        deadline = time.monotonic() + seconds
        sums = self._rng.sample(SUMS, len(SUMS))
        self._bar.extend(1)
        self._bar.say("loading the model")
        self._ask(sums[-1:], 1)
        size = size or self._affordable(sums[-SLOW.questions :], deadline)
        held_out, rest = sums[: size.held_out], sums[size.held_out :]
        self._bar.extend(2 * (2 * size.held_out + size.trained))
        began = time.monotonic()
        before = self._accuracy(held_out)
        rewards = list(self._steps(rest, size, deadline - (time.monotonic() - began)))
        after = self._accuracy(held_out)
        return Outcome(size, rewards, before, after, self.tokens_sampled, self.tokens_trained)

    def _affordable(self, sums: list[Sum], deadline: float) -> Size:
        """What there is time for, from what the replies of one small step take.
        Their advantages are 0, and so is the gradient that they add.
        """
        count = len(sums) * SLOW.samples
        self._bar.extend(2 * count)
        self._bar.say("measuring this machine")
        began = time.monotonic()
        groups = self._ask(sums, SLOW.samples)
        self._session.grpo([_example(reply, 0) for group in groups for reply in group]).result()
        self._bar.moved(count)
        each = (time.monotonic() - began) / count
        size = choose(each, deadline - time.monotonic())
        self._bar.print(f"A reply takes {each:.2f} s to sample and train on here: {size}, if there is time.")
        return size

    def _steps(self, sums: list[Sum], size: Size, deadline: float) -> Iterator[float]:
        """The mean reward of each."""
        longest = 0.0
        for step in range(1, size.steps + 1):
            began = time.monotonic()
            if step > 1 and began + longest > deadline:
                self._bar.print(f"The time is up after {step - 1} of {size.steps} steps.")
                return
            self._bar.say(f"step {step}/{size.steps}")
            groups = self._ask(self._rng.sample(sums, size.questions), size.samples)
            metrics = self._train(groups).metrics
            score = mean(reply.reward for group in groups for reply in group)
            self._session.log("reward", 2 * step, score)
            clip = metrics["loss/clip/high_fraction"] + metrics["loss/clip/low_fraction"]
            self._bar.show(reward=score, kl=metrics["loss/kl_policy/mean"], clip=clip)
            longest = max(longest, time.monotonic() - began)
            yield score

    def _accuracy(self, sums: list[Sum]) -> float:
        self._bar.say("held-out sums")
        score = mean(group[0].reward for group in self._ask(sums, 1, temperature=0))
        self._bar.moved(len(sums))  # nothing is trained on them
        return score

    def _ask(self, sums: list[Sum], count: int, temperature: float = 1) -> list[list[Reply]]:
        """`count` replies to each question, with their rewards. All questions are submitted before the
        first is waited for, so that the server may batch them."""
        prompts = [self._tokenizer.encode(question(a, b)).ids for a, b in sums]
        params = {"max_tokens": MAX_TOKENS, "stop": ["\n"], "temperature": temperature}
        operations = [self._session.sample(prompt, count, **params) for prompt in prompts]
        groups = []
        for (a, b), prompt, operation in zip(sums, prompts, operations, strict=True):
            sequences = operation.result().sequences
            texts = [self._tokenizer.decode(sequence.tokens) for sequence in sequences]
            groups.append(
                [Reply(prompt, each, reward(text, a, b)) for each, text in zip(sequences, texts, strict=True)]
            )
            self.tokens_sampled += sum(len(sequence.tokens) for sequence in sequences)
            self._bar.moved(count)
        return groups

    def _train(self, groups: list[list[Reply]]) -> Trained:
        """An optimizer step on each half of the replies. The second half was sampled by weights that are
        one step old, so its ratios differ from 1."""
        examples = [
            _example(reply, advantage)
            for group in groups
            for reply, advantage in zip(group, advantages(group), strict=True)
        ]
        halves = [examples[::2], examples[1::2]]
        operations = []
        for half in halves:
            operations.append(self._session.grpo(half, agg_type="token_mean"))
            stepped = self._session.optim_step(self._learning_rate)
        for half, operation in zip(halves, operations, strict=True):
            trained = operation.result()
            self._bar.moved(len(half))
        stepped.result()
        self.tokens_trained += sum(len(reply.sequence.tokens) for group in groups for reply in group)
        return trained
