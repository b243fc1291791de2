"""Supervised fine-tuning with a Tinker script: only its import line says where it runs.

pip install "together[tinker]" transformers
TOGETHER_BASE_URL=http://127.0.0.1:8000/together TOGETHER_API_KEY=any python examples/tinker_bridge_sft.py
"""

import argparse

import together.post_training.tinker as tinker
from transformers import AutoTokenizer

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
PAIRS = (("The password is", " swordfish."), ("The capital of Celerity is", " Velocity."))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--tokenizer", default=MODEL)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)

    def datum(prompt: str, answer: str) -> tinker.types.Datum:
        """Only the answer's tokens have weight; everything is shifted by one."""
        before, after = tokenizer.encode(prompt), tokenizer.encode(answer)
        tokens, weights = before + after, [0.0] * len(before) + [1.0] * len(after)
        return tinker.types.Datum(
            model_input=tinker.types.ModelInput.from_ints(tokens[:-1]),
            loss_fn_inputs={"target_tokens": tokens[1:], "weights": weights[1:]},  # type: ignore[dict-item]
        )

    batch = [datum(*pair) for pair in PAIRS]
    service = tinker.ServiceClient()
    with service.create_lora_training_client(options.model, rank=8, train_unembed=False) as training:
        for step in range(options.steps):
            forward = training.forward_backward(batch, "cross_entropy")
            training.optim_step(tinker.types.AdamParams(learning_rate=1e-3)).result()
            print(f"step {step + 1}: loss {forward.result().metrics['loss:sum']:.4f}")
        print("saved", training.save_state("final").result().path)
        sampler = training.save_weights_and_get_sampling_client()
        for prompt, _ in PAIRS:
            asked = tinker.types.ModelInput.from_ints(tokenizer.encode(prompt))
            params = tinker.types.SamplingParams(max_tokens=6, temperature=0.0)
            (reply,) = sampler.sample(asked, 1, params).result().sequences
            print(prompt, tokenizer.decode(reply.tokens))


if __name__ == "__main__":
    main()
