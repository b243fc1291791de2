"""benchmarks.exactness at the batch sizes of benchmarks/, on a tiny model; `make bench` judges the bundled one so."""

from collections.abc import Iterator

import pytest

from benchmarks import sampling
from benchmarks.exactness import judge
from benchmarks.model import random_text
from benchmarks.peers.celerity import Celerity
from benchmarks.workloads import Sampling, Writer
from testing.tiny_model import TOKENIZER_SIZE, make_tiny_model

TEXT = random_text(TOKENIZER_SIZE)
EIGHT_SESSIONS = Writer(TEXT).batch(32, max_tokens=16, sessions=8, name="eight sessions")


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, dtype: str) -> Iterator[Celerity]:
    # Logits as even as a trained model's: with wilder ones a step of bf16 is worth more than the limit.
    model = make_tiny_model(tmp_path_factory.mktemp("tiny"), std=0.05)
    celerity = Celerity(model, dtype, "cpu", threads=1)
    yield celerity
    celerity.close()


@pytest.mark.parametrize("workload", [*sampling.workloads(TEXT, quick=True), EIGHT_SESSIONS], ids=lambda one: one.name)
def test_other_requests_change_no_token_and_the_trainer_agrees_with_the_sampler(
    engine: Celerity, dtype: str, workload: Sampling
) -> None:
    assert judge(engine, workload, alone=2).breaks(dtype) == []
