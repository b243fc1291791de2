"""A session that trains, publishes and samples, in the fewest words."""

from typing import Any

from together.post_training import SessionClient

from tests.together.bodies import PROMPT, loss, supervised, tokens

Drawn = tuple[list[Any], list[tuple[int, int]]]


def train(session: SessionClient) -> None:
    session.trainer.forward_backward(samples=[supervised(PROMPT)], loss=loss("LOSS_TYPE_CROSS_ENTROPY"))
    session.trainer.optim_step(adam_params={"learning_rate": 0.1, "grad_clip_norm": 0.0})


def drawn(result: Any) -> Drawn:
    """Tokens and logprobs of each sequence, and the policy segments: where each begins, and its version."""
    sequences = [[each.tokens, each.logprobs] for each in result.sequences]
    return sequences, [(segment.start_token, segment.version) for segment in result.policy_segments]


def sampled(session: SessionClient) -> Drawn:
    """Greedy, so that the numbers tell the weights."""
    return drawn(session.generator.sample(tokens(*PROMPT), 1, {"max_tokens": 5, "temperature": 0}))


def versions(session: SessionClient) -> tuple[Any, Any, bool]:
    """Version applied, version to come, and whether one is to come."""
    policy = session.retrieve().policy_state
    return policy.applied_weights_version, policy.target_weights_version, policy.pending_publish
