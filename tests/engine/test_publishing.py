"""Sessions that publish: samples use the weights of the last weights-sync, and go on doing so after a restore."""

from pathlib import Path

import numpy as np
import pytest

from domain.session import LoraConfig
from tests.engine.calls import forward_backward, logprobs_of, optim_step, packed, random_sample, sample, sample_request
from workers.engine.adapters.state import AdapterState
from workers.engine.engine import Engine

LORA = LoraConfig(rank=4, alpha=8, dropout=0.0)
Z = random_sample(3, 20)


@pytest.fixture
def publishing(engine: Engine, tiny: Path) -> Engine:
    engine.create_adapter("p", tiny, LORA, 0, publishes=True).result()
    return engine


def trained(engine: Engine) -> None:
    forward_backward(engine, packed([Z]), "p")
    optim_step(engine, "p", learning_rate=0.05)


def drawn(engine: Engine, session: str = "p") -> tuple[list[int], int]:
    result = engine.sample(session, sample_request([[5, 6, 7]], max_tokens=8, seed=1)).result()
    return result.sequences[0].tokens.tolist(), result.step


def test_training_moves_samples_only_when_it_is_published(publishing: Engine) -> None:
    first = drawn(publishing)
    trained(publishing)
    assert drawn(publishing) == first
    assert publishing.weights_sync("p").result().step == 1
    second = drawn(publishing)
    assert second != first and second[1] == 1
    trained(publishing)
    assert drawn(publishing) == second


def test_a_session_that_does_not_publish_samples_what_it_trained(engine: Engine) -> None:
    first = drawn(engine, "s")
    forward_backward(engine, packed([Z]))
    optim_step(engine, learning_rate=0.05)
    assert drawn(engine, "s") != first and drawn(engine, "s")[1] == 1


def test_what_is_published_survives_a_restore_bit_for_bit(publishing: Engine, tiny: Path) -> None:
    trained(publishing)
    publishing.weights_sync("p").result()
    trained(publishing)
    before = sample(publishing, [[5, 6, 7]], "p", max_tokens=8, seed=1)
    state = AdapterState.from_bytes(publishing.copy_adapter("p").result().to_bytes())
    publishing.create_adapter("p", tiny, LORA, 0, state, publishes=True).result()
    after = sample(publishing, [[5, 6, 7]], "p", max_tokens=8, seed=1)
    assert [each.logprobs.tolist() for each in after] == [each.logprobs.tolist() for each in before]
    saved = AdapterState.from_bytes(state.without_gradients().to_bytes())
    publishing.create_adapter("p", tiny, LORA, 0, saved, publishes=True).result()
    assert drawn(publishing)[1] == 2


def test_prompts_are_scored_by_the_published_weights(publishing: Engine) -> None:
    prompt = np.concatenate([Z[0], Z[1][-1:]])
    request = sample_request([prompt, [9]], max_tokens=1)
    trained(publishing)
    (scored, single) = publishing.score_prompts("p", request).result()
    assert single.logprobs.tolist() == [0.0]
    assert np.array_equal(scored.logprobs[1:], logprobs_of(publishing, [(prompt[:-1], prompt[1:])], "s")[0])
    publishing.weights_sync("p").result()
    now = logprobs_of(publishing, [(prompt[:-1], prompt[1:])], "p")[0]
    assert np.array_equal(publishing.score_prompts("p", request).result()[0].logprobs[1:], now)
