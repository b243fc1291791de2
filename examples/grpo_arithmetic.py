"""GRPO: a small language model learns to answer sums.

One step of the loop: ask every question several times (`sample`), score each reply by a rule, turn
the scores of a question's replies into advantages, add the gradient of the GRPO loss
(`forward-backward`), and step the optimizer (`optim-step`).
"""

import argparse
import os
import random
import re
import time
from pathlib import Path
from statistics import mean, pstdev
from typing import Any, NamedTuple

from transformers import AutoTokenizer

from client import Client, Operation, Session
from client.progress import Steps, results
from client.results import Sequence, Trained
from client.session import grpo_sample
from examples.report import report

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
DEFAULTS = {"steps": 15, "questions": 8, "samples": 8, "max-tokens": 12, "held-out": 30, "seed": 0}


class Reply(NamedTuple):
    prompt: list[int]
    sequence: Sequence
    reward: float


def reward(text: str, a: int, b: int) -> float:
    """1 for a reply whose last number is the sum."""
    return float(re.findall(r"\d+", text)[-1:] == [str(a + b)])


def ask(session: Session, tokenizer: Any, sums: list[tuple[int, int]], count: int, **params: Any) -> list[list[Reply]]:
    """`count` replies to each question, with their rewards. All questions are submitted before the
    first is waited for, so that the server may batch them."""
    questions = [[{"role": "user", "content": f"What is {a} + {b}?"}] for a, b in sums]
    prompts = tokenizer.apply_chat_template(questions, add_generation_prompt=True, return_dict=True)["input_ids"]
    operations = [session.sample(prompt, count, **params) for prompt in prompts]
    groups = []
    for (a, b), prompt, sampled in zip(sums, prompts, results(operations), strict=True):
        texts = [tokenizer.decode(sequence.tokens, skip_special_tokens=True) for sequence in sampled.sequences]
        answered = zip(sampled.sequences, texts, strict=True)
        groups.append([Reply(prompt, each, reward(text, a, b)) for each, text in answered])
    return groups


def advantages(group: list[Reply]) -> list[float]:
    """How much better each reply to a question is than the others, in standard deviations."""
    rewards = [reply.reward for reply in group]
    return [(each - mean(rewards)) / (pstdev(rewards) + 1e-4) for each in rewards]


def train(session: Session, groups: list[list[Reply]], learning_rate: float) -> Trained:
    """An optimizer step on each half of the replies. The second half was sampled by weights that are
    one step old, so its ratios differ from 1."""
    samples = [
        grpo_sample(reply.prompt, reply.sequence.tokens, reply.sequence.logprobs, advantage)
        for group in groups
        for reply, advantage in zip(group, advantages(group), strict=True)
    ]
    operations: list[Operation[Any]] = []
    for half in (samples[::2], samples[1::2]):
        operations += [session.grpo(half, agg_type="token_mean"), session.optim_step(learning_rate)]
    *_, trained, _ = results(operations)
    return trained


def main(options: argparse.Namespace) -> bool:
    began, rng = time.monotonic(), random.Random(options.seed)
    sums = rng.sample([(a, b) for a in range(10) for b in range(10)], 100)
    held_out, rest = sums[: options.held_out], sums[options.held_out :]
    client, tokenizer = Client(options.url, options.key), AutoTokenizer.from_pretrained(options.tokenizer)
    session = client.create_session(MODEL, rank=16, alpha=32, dropout=0)
    rewards, tokens = [], []
    before = ask(session, tokenizer, held_out, 1, temperature=0, max_tokens=options.max_tokens)
    steps = Steps(options.steps, title="GRPO")
    for step in steps:
        batch = rng.sample(rest, options.questions)
        groups = ask(session, tokenizer, batch, options.samples, max_tokens=options.max_tokens)
        metrics = train(session, groups, options.learning_rate).metrics
        rewards.append(mean(reply.reward for group in groups for reply in group))
        session.log("reward", 2 * step, rewards[-1])
        tokens.append(sum(len(reply.sequence.tokens) for group in groups for reply in group))
        clip = metrics["loss/clip/high_fraction"] + metrics["loss/clip/low_fraction"]
        steps.show(reward=rewards[-1], kl=metrics["loss/kl_policy/mean"], clip=clip)
    after = ask(session, tokenizer, held_out, 1, temperature=0, max_tokens=options.max_tokens)
    if not options.keep:
        session.stop()
    summary = {
        "steps": options.steps,
        "reward_first": mean(rewards[:3]),
        "reward_last": mean(rewards[-3:]),
        "accuracy_before": mean(group[0].reward for group in before),
        "accuracy_after": mean(group[0].reward for group in after),
        "seconds": round(time.monotonic() - began, 1),
        "tokens_sampled": sum(tokens) + sum(len(group[0].sequence.tokens) for group in before + after),
        "tokens_trained": sum(tokens),
    }
    report(rewards, summary, options.output)
    return summary["reward_last"] > summary["reward_first"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--tokenizer", default=MODEL, help="hub id or directory")
    parser.add_argument("--output", type=Path, default=Path("artifacts/demo"))
    parser.add_argument("--key", default=os.environ.get("CELERITY_CLIENT_KEY", ""), help="where the server needs one")
    parser.add_argument("--keep", action="store_true", help="leave the session running, to be looked at")
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    raise SystemExit(0 if main(parser.parse_args()) else 1)
