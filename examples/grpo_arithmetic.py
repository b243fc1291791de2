"""GRPO over REST: a small language model learns to answer sums, and nothing but HTTP is used.

One step of the loop: ask every question several times (`sample`), score each reply by a rule, turn
the scores of a question's replies into advantages, add the gradient of the GRPO loss
(`forward-backward`), and step the optimizer (`optim-step`).
"""

import argparse
import json
import random
import re
import time
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import httpx
import matplotlib.pyplot as plt
from tqdm import tqdm
from transformers import AutoTokenizer

Json = dict[str, Any]
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
SUMS = [(a, b) for a in range(10) for b in range(10)]


class Session:
    """A training session: submit an operation, then wait for its result."""

    def __init__(self, url: str, lora: Json, api_key: str | None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.http = httpx.Client(base_url=f"{url}/v1/rl", headers=headers, timeout=60)
        created = self.call("POST", "/training-sessions", {"base_model": MODEL, "lora_config": lora})
        self.path = f"/training-sessions/{created['session_id']}"

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        response = self.http.request(method, path, json=body)
        if response.is_error:
            raise RuntimeError(f"{response.status_code}: {response.text}")
        return dict(response.json())

    def submit(self, kind: str, body: Json) -> str:
        """Answers at once, before any model work; the path to read the operation at."""
        operation_id = self.call("POST", f"{self.path}:{kind}", body)["operation_id"]
        return f"{self.path}/operations/{kind}/{operation_id}"

    def wait(self, path: str) -> Json:
        """The server holds each GET for up to a second, so this loop is neither late nor busy."""
        while True:
            operation = self.call("GET", path)
            if operation["status"] == "TRAINING_OPERATION_STATUS_COMPLETED":
                return dict(operation["data"])
            if operation["status"] == "TRAINING_OPERATION_STATUS_FAILED":
                raise RuntimeError(operation["error"]["message"])

    def run(self, kind: str, body: Json) -> Json:
        return self.wait(self.submit(kind, body))


def model_input(tokens: list[int]) -> Json:
    return {"chunks": [{"encoded_text": {"tokens": tokens}}]}


def question(tokenizer: Any, a: int, b: int) -> list[int]:
    messages = [{"role": "user", "content": f"What is {a} + {b}?"}]
    return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"])


def reward(reply: str, a: int, b: int) -> float:
    """1 for a reply whose last number is the sum."""
    return float(re.findall(r"\d+", reply)[-1:] == [str(a + b)])


def training_samples(group: list[Json]) -> list[Json]:
    """A question's replies with their advantages. A sample is the whole sequence with one entry per
    token; the mask leaves the prompt out."""
    rewards = [reply["reward"] for reply in group]
    samples = []
    for reply in group:
        advantage = (reply["reward"] - mean(rewards)) / (pstdev(rewards) + 1e-4)
        before, tokens = len(reply["prompt"]), reply["tokens"]
        grpo_inputs = {
            "advantages": {"data": [0.0] * before + [advantage] * len(tokens)},
            "generator_logprobs": {"data": [0.0] * before + reply["logprobs"]},
        }
        mask = {"data": [0] * before + [1] * len(tokens)}
        inputs = {"loss_mask": mask, "grpo_inputs": grpo_inputs}
        samples.append({"model_input": model_input(reply["prompt"] + tokens), "loss_inputs": inputs})
    return samples


class Trainer:
    def __init__(self, session: Session, tokenizer: Any, options: argparse.Namespace) -> None:
        self.session, self.tokenizer, self.options = session, tokenizer, options
        self.tokens_sampled = self.tokens_trained = 0

    def sample(self, sums: list[tuple[int, int]], count: int, **params: Any) -> list[list[Json]]:
        """`count` replies to each question. All are submitted before the first is waited for, so
        that the server may batch them."""
        body = {"num_samples": count, "sampling_params": {"max_tokens": self.options.max_tokens, **params}}
        prompts = [question(self.tokenizer, a, b) for a, b in sums]
        paths = [self.session.submit("sample", {**body, "prompt": model_input(prompt)}) for prompt in prompts]
        groups = [self.session.wait(path)["sequences"] for path in paths]
        for (a, b), prompt, group in zip(sums, prompts, groups, strict=True):
            for reply in group:
                text = self.tokenizer.decode(reply["tokens"], skip_special_tokens=True)
                reply |= {"prompt": prompt, "reward": reward(text, a, b)}
                self.tokens_sampled += len(reply["tokens"])
        return groups

    def accuracy(self, sums: list[tuple[int, int]]) -> float:
        return mean(group[0]["reward"] for group in self.sample(sums, 1, temperature=0))

    def step(self, sums: list[tuple[int, int]]) -> Json:
        """One round of sampling, and an optimizer step on each half of what it gave. The second
        half was sampled by weights that are one step old, so its ratios differ from 1."""
        groups = self.sample(sums, self.options.samples)
        samples = [sample for group in groups for sample in training_samples(group)]
        loss = {"type": "LOSS_TYPE_GRPO", "grpo_params": {"agg_type": "token_mean"}}
        for half in (samples[::2], samples[1::2]):
            path = self.session.submit("forward-backward", {"samples": half, "loss": loss})
            self.session.submit("optim-step", {"learning_rate": self.options.learning_rate})
        metrics = self.session.wait(path)["metrics"]
        self.tokens_trained += sum(len(reply["tokens"]) for group in groups for reply in group)
        return {
            "reward": mean(reply["reward"] for group in groups for reply in group),
            "kl": metrics["loss/kl_policy/mean"],
            "clip": metrics["loss/clip/high_fraction"] + metrics["loss/clip/low_fraction"],
        }


def report(steps: list[Json], summary: Json, folder: Path) -> None:
    """A table on the terminal, a plot and the summary as files."""
    print(f"{'step':>4} {'reward':>8} {'KL':>9} {'clipped':>8}")
    for number, step in enumerate(steps, start=1):
        print(f"{number:4} {step['reward']:8.3f} {step['kl']:9.5f} {step['clip']:8.3f}")
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(range(1, len(steps) + 1), [step["reward"] for step in steps], marker="o")
    axes.set(xlabel="step", ylabel="mean reward", ylim=(0, 1.02), title="GRPO on one-digit sums")
    figure.savefig(folder / "reward.png", dpi=120)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))


def main(options: argparse.Namespace) -> bool:
    began = time.monotonic()
    rng = random.Random(options.seed)
    sums = rng.sample(SUMS, len(SUMS))
    held_out, train = sums[: options.held_out], sums[options.held_out :]
    session = Session(options.url, {"rank": 16, "alpha": 32, "dropout": 0}, options.api_key)
    trainer = Trainer(session, AutoTokenizer.from_pretrained(options.tokenizer), options)
    accuracy_before = trainer.accuracy(held_out)
    steps = []
    with tqdm(total=options.steps, desc="GRPO") as bar:
        for _ in range(options.steps):
            steps.append(trainer.step(rng.sample(train, options.questions)))
            bar.set_postfix({name: f"{value:.3f}" for name, value in steps[-1].items()}, refresh=False)
            bar.update()
    summary = {
        "steps": len(steps),
        "reward_first": mean(step["reward"] for step in steps[:3]),
        "reward_last": mean(step["reward"] for step in steps[-3:]),
        "accuracy_before": accuracy_before,
        "accuracy_after": trainer.accuracy(held_out),
        "seconds": round(time.monotonic() - began, 1),
        "tokens_sampled": trainer.tokens_sampled,
        "tokens_trained": trainer.tokens_trained,
    }
    session.call("POST", f"{session.path}:stop")
    report(steps, summary, options.output)
    return summary["reward_last"] > summary["reward_first"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--api-key")
    parser.add_argument("--tokenizer", default=MODEL, help="hub id or directory")
    parser.add_argument("--output", type=Path, default=Path("artifacts/demo"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=12)
    parser.add_argument("--held-out", type=int, default=30)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    raise SystemExit(0 if main(parser.parse_args()) else 1)
