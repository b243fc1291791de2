"""Examples: what a session is trained on, in the form that a forward-backward takes."""

from collections.abc import Sequence

from celerity_client.results import Json


def model_input(tokens: Sequence[int]) -> Json:
    return {"chunks": [{"encoded_text": {"tokens": list(tokens)}}]}


def example(tokens: Sequence[int], mask: Sequence[int]) -> Json:
    """A whole sequence, with a 1 in the mask for each token that counts."""
    return {"model_input": model_input(tokens), "loss_inputs": {"loss_mask": {"data": list(mask)}}}


def grpo_example(prompt: Sequence[int], tokens: Sequence[int], logprobs: Sequence[float], advantage: float) -> Json:
    """A completion that was sampled, every token of it with the same advantage. The mask leaves the prompt out."""
    before = len(prompt)
    made = example([*prompt, *tokens], [0] * before + [1] * len(tokens))
    made["loss_inputs"]["grpo_inputs"] = {
        "advantages": {"data": [0.0] * before + [advantage] * len(tokens)},
        "generator_logprobs": {"data": [0.0] * before + list(logprobs)},
    }
    return made
