"""Where the meanings coincide, both APIs give the same numbers: same checkpoint, same seeds."""

from collections.abc import Iterator

import httpx
import pytest
from together.post_training import ModelResourcesClient, SessionClient

from testing.bodies import scored as native_scored
from tests.stories.client import Session
from tests.together.bodies import PROMPT, loss, scored, supervised, tokens


@pytest.fixture
def http(base_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url.removesuffix("/together"), timeout=60.0) as client:
        yield client


@pytest.fixture
def checkpoint(session: SessionClient) -> str:
    """Of an adapter that has been trained, so that it matters."""
    session.trainer.forward_backward(samples=[supervised(PROMPT)], loss=loss("LOSS_TYPE_CROSS_ENTROPY"))
    session.trainer.optim_step(adam_params={"learning_rate": 1e-2})
    return session.create_training_checkpoint().id


def test_tokens_and_losses_are_the_same(resources: ModelResourcesClient, http: httpx.Client, checkpoint: str) -> None:
    native = Session(http, checkpoint_id=checkpoint)
    ours = native.sample(PROMPT, 2, max_tokens=6, seed=42)
    with resources.create_session(resume_from_checkpoint_id=checkpoint) as session:
        theirs = session.generator.sample(tokens(*PROMPT), 2, {"max_tokens": 6, "seed": 42}).sequences
        assert [each.tokens for each in theirs] == [each["tokens"] for each in ours]
        assert [each.logprobs for each in theirs] == [each["logprobs"] for each in ours]
        same = {"agg_type": "GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN"}
        config = loss("LOSS_TYPE_GRPO", clip_low_threshold=0.8, clip_high_threshold=1.28, **same)
        batch = [scored(PROMPT, each, advantage) for each, advantage in zip(theirs, (1.0, -0.5), strict=True)]
        result = session.trainer.forward_backward(samples=batch, loss=config)
        step = session.trainer.optim_step(adam_params={"learning_rate": 1e-2, "grad_clip_norm": 0.0})
        session.trainer.weights_sync()
        after = session.generator.sample(tokens(*PROMPT), 1, {"max_tokens": 6, "seed": 1}).sequences[0]
    data = native.train([native_scored(PROMPT, each, a) for each, a in zip(ours, (1.0, -0.5), strict=True)], **same)
    assert (result.loss, result.metrics) == (data["loss"], data["metrics"])
    assert native.step(1e-2)["step"] == step.step
    assert native.sample(PROMPT, 1, max_tokens=6, seed=1)[0]["tokens"] == after.tokens
