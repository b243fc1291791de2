"""What a model thinks of the tokens of a prompt."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model
from tests.engine.calls import logprobs_of, random_tokens, sample_request
from tests.engine.conftest import StartEngine


@pytest.mark.usefixtures("kernels")
def test_the_likeliest_tokens_of_a_prompts_places_are_those_of_its_logprobs(
    start_engine: StartEngine, tiny: Path
) -> None:
    engine = start_engine()
    engine.create_adapter("s", tiny, LoraConfig(), 0).result()
    prompt = random_tokens(3, 20)
    request = msgspec.structs.replace(sample_request([prompt], max_tokens=1), topk_prompt_logprobs=10_000)
    (scored,) = engine.score_prompts("s", request).result()
    tokens, logprobs = (part.reshape(len(prompt) - 1, -1) for part in (scored.top_tokens, scored.top_logprobs))
    assert [sorted(row) for row in tokens.tolist()] == [list(range(tokens.shape[1]))] * len(tokens)
    assert (np.diff(logprobs) <= 0).all()
    np.testing.assert_allclose(np.exp(logprobs.astype(np.float64)).sum(1), 1.0, atol=1e-6)
    own = np.take_along_axis(logprobs, np.argsort(tokens), 1)[range(len(tokens)), prompt[1:]]
    np.testing.assert_allclose(own, scored.logprobs[1:], atol=1e-6)


@pytest.mark.usefixtures("kernels")
def test_a_prompt_that_fills_the_context_is_scored_as_the_trainer_scores_it(
    tmp_path: Path, start_engine: StartEngine
) -> None:
    engine = start_engine(micro_batch_tokens=40)
    engine.create_adapter("s", make_tiny_model(tmp_path, max_position_embeddings=64), LoraConfig(), 0).result()
    prompt = random_tokens(3, 64)
    request = msgspec.structs.replace(sample_request([prompt], max_tokens=1), prompt_logprobs=True, max_length=64)
    (scored,) = engine.score_prompts("s", request).result()
    (trained,) = logprobs_of(engine, [(prompt[:-1], prompt[1:])])
    np.testing.assert_allclose(scored.logprobs, [0.0, *trained], atol=1e-5)
