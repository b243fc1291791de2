"""GRPO with the official `together` SDK, unmodified: a model learns to answer in digits.

pip install together transformers
TOGETHER_BASE_URL=http://127.0.0.1:8000/together TOGETHER_API_KEY=any python examples/together_sdk_grpo.py
"""

import argparse
from statistics import mean
from typing import Any

from together.post_training import ModelInput, ModelResourcesClient, Sample, SampledSequence
from transformers import AutoTokenizer

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
QUESTIONS = ("How many legs has a spider?", "What is two plus three?", "How many days has a week?")


def model_input(tokens: list[int]) -> ModelInput:
    return {"chunks": [{"encoded_text": {"tokens": tokens}}]}


def digits(text: str) -> float:
    """The reward: the share of characters that are digits."""
    return sum(character.isdigit() for character in text) / max(1, len(text))


def sample_of(prompt: list[int], sequence: SampledSequence, advantage: float) -> Sample:
    """Entry i of every array belongs to the token after the input's token i; the mask leaves the prompt out."""
    reply, before = [int(token) for token in sequence.tokens], len(prompt) - 1
    inputs: Any = {
        "target_tokens": [*prompt[1:], *reply],
        "mask": [0] * before + [1] * len(reply),
        "logprobs": [0.0] * before + (sequence.logprobs or []),
        "advantages": [0.0] * before + [advantage] * len(reply),
    }
    return {"model_input": model_input([*prompt, *reply[:-1]]), "loss_fn_inputs": inputs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--tokenizer", default=MODEL)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--samples", type=int, default=8)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
    prompts = [tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False) for chat in chats]
    with (
        ModelResourcesClient.create(base_model=options.model) as resources,
        resources.create_session(display_name="digits", lora_config={"rank": 8}) as session,
    ):
        for step in range(options.steps):
            results = session.generator.sample_batch(
                [model_input(prompt) for prompt in prompts], options.samples, {"max_tokens": 12, "seed": step}
            )
            batch, rewards = [], []
            for prompt, result in zip(prompts, results, strict=True):
                scores = [digits(tokenizer.decode(each.tokens, skip_special_tokens=True)) for each in result.sequences]
                rewards += scores
                batch += [
                    sample_of(prompt, sequence, score - mean(scores))
                    for sequence, score in zip(result.sequences, scores, strict=True)
                ]
            loss = session.trainer.forward_backward(samples=batch, loss={"type": "LOSS_TYPE_GRPO"}).loss
            session.trainer.optim_step(adam_params={"learning_rate": 1e-3})
            session.trainer.weights_sync()
            print(f"step {step + 1}: mean reward {mean(rewards):.3f}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
