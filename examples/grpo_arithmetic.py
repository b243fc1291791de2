"""GRPO over REST: a small language model learns to answer sums, and nothing but HTTP is used.

One step of the loop: ask every question several times (`sample`), score each reply by a rule, turn
the scores of a question's replies into advantages, add the gradient of the GRPO loss
(`forward-backward`), and step the optimizer (`optim-step`).
"""

import argparse
import random
import re
import time
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import httpx
from report import report
from tqdm import tqdm
from transformers import AutoTokenizer

Json = dict[str, Any]
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
DEFAULTS = {"steps": 15, "questions": 8, "samples": 8, "max-tokens": 12, "held-out": 30, "seed": 0}


class Session:
    """A training session: submit an operation, then wait for its result."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=f"{url}/v1/rl", timeout=60)
        lora = {"rank": 16, "alpha": 32, "dropout": 0}
        created = self.call("POST", "/training-sessions", {"base_model": MODEL, "lora_config": lora})
        self.path = f"/training-sessions/{created['session_id']}"

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        response = self.http.request(method, path, json=body)
        if response.is_error:
            raise RuntimeError(f"{response.status_code}: {response.text}")
        return dict(response.json())

    def submit(self, kind: str, body: Json) -> str:
        """Answers at once, before any model work: with the path to read the operation at."""
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


def model_input(tokens: list[int]) -> Json:
    return {"chunks": [{"encoded_text": {"tokens": tokens}}]}


def reward(text: str, a: int, b: int) -> float:
    """1 for a reply whose last number is the sum."""
    return float(re.findall(r"\d+", text)[-1:] == [str(a + b)])


def ask(session: Session, tokenizer: Any, sums: list[tuple[int, int]], count: int, **params: Any) -> list[list[Json]]:
    """`count` replies to each question, with their rewards. All questions are submitted before the
    first is waited for, so that the server may batch them."""
    questions = [[{"role": "user", "content": f"What is {a} + {b}?"}] for a, b in sums]
    chats = tokenizer.apply_chat_template(questions, add_generation_prompt=True, return_dict=True)
    bodies = [{"prompt": model_input(p), "num_samples": count, "sampling_params": params} for p in chats["input_ids"]]
    paths = [session.submit("sample", body) for body in bodies]
    groups = [session.wait(path)["sequences"] for path in paths]
    for (a, b), prompt, group in zip(sums, chats["input_ids"], groups, strict=True):
        for reply in group:
            text = tokenizer.decode(reply["tokens"], skip_special_tokens=True)
            reply |= {"prompt": prompt, "reward": reward(text, a, b)}
    return groups


def training_samples(group: list[Json]) -> list[Json]:
    """A question's replies with their advantages. A sample is the whole sequence with one entry per
    token; the mask leaves the prompt out."""
    rewards, samples = [reply["reward"] for reply in group], []
    for reply in group:
        advantage = (reply["reward"] - mean(rewards)) / (pstdev(rewards) + 1e-4)
        before, tokens = len(reply["prompt"]), reply["tokens"]
        grpo_inputs = {
            "advantages": {"data": [0.0] * before + [advantage] * len(tokens)},
            "generator_logprobs": {"data": [0.0] * before + reply["logprobs"]},
        }
        inputs = {"loss_mask": {"data": [0] * before + [1] * len(tokens)}, "grpo_inputs": grpo_inputs}
        samples.append({"model_input": model_input(reply["prompt"] + tokens), "loss_inputs": inputs})
    return samples


def train(session: Session, groups: list[list[Json]], learning_rate: float) -> Json:
    """An optimizer step on each half of the replies. The second half was sampled by weights that are
    one step old, so its ratios differ from 1."""
    samples = [sample for group in groups for sample in training_samples(group)]
    loss = {"type": "LOSS_TYPE_GRPO", "grpo_params": {"agg_type": "token_mean"}}
    paths = []
    for half in (samples[::2], samples[1::2]):
        paths += [session.submit("forward-backward", {"samples": half, "loss": loss})]
        paths += [session.submit("optim-step", {"learning_rate": learning_rate})]
    return dict([session.wait(path) for path in paths][-2]["metrics"])


def main(options: argparse.Namespace) -> bool:
    began, rng = time.monotonic(), random.Random(options.seed)
    sums = rng.sample([(a, b) for a in range(10) for b in range(10)], 100)
    held_out, rest = sums[: options.held_out], sums[options.held_out :]
    session, tokenizer = Session(options.url), AutoTokenizer.from_pretrained(options.tokenizer)
    rewards, tokens = [], []
    before = ask(session, tokenizer, held_out, 1, temperature=0, max_tokens=options.max_tokens)
    with tqdm(total=options.steps, desc="GRPO") as bar:
        for _ in range(options.steps):
            batch = rng.sample(rest, options.questions)
            groups = ask(session, tokenizer, batch, options.samples, max_tokens=options.max_tokens)
            metrics = train(session, groups, options.learning_rate)
            rewards.append(mean(reply["reward"] for group in groups for reply in group))
            tokens.append(sum(len(reply["tokens"]) for group in groups for reply in group))
            clip = metrics["loss/clip/high_fraction"] + metrics["loss/clip/low_fraction"]
            bar.set_postfix(reward=f"{rewards[-1]:.3f}", kl=f"{metrics['loss/kl_policy/mean']:.4f}", clip=f"{clip:.3f}")
            bar.update()
    after = ask(session, tokenizer, held_out, 1, temperature=0, max_tokens=options.max_tokens)
    session.call("POST", f"{session.path}:stop")
    summary = {
        "steps": options.steps,
        "reward_first": mean(rewards[:3]),
        "reward_last": mean(rewards[-3:]),
        "accuracy_before": mean(group[0]["reward"] for group in before),
        "accuracy_after": mean(group[0]["reward"] for group in after),
        "seconds": round(time.monotonic() - began, 1),
        "tokens_sampled": sum(tokens) + sum(len(group[0]["tokens"]) for group in before + after),
        "tokens_trained": sum(tokens),
    }
    report(rewards, summary, options.output)
    return summary["reward_last"] > summary["reward_first"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--tokenizer", default=MODEL, help="hub id or directory")
    parser.add_argument("--output", type=Path, default=Path("artifacts/demo"))
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    raise SystemExit(0 if main(parser.parse_args()) else 1)
