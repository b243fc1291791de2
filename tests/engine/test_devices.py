"""benchmarks.exactness on each device there is: what other tests show on the CPU need not hold on a GPU by itself."""

from pathlib import Path

import pytest
import torch

from benchmarks import training
from benchmarks.exactness import judge
from benchmarks.model import random_text
from benchmarks.peers.celerity import Celerity
from benchmarks.peers.peft import Peft
from benchmarks.workloads import Writer
from testing.tiny_model import TOKENIZER_SIZE, make_tiny_model

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"), std=0.05)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sampler_and_trainer_agree_on_a_rollout_and_other_requests_change_no_token(
    model: Path, device: str, dtype: str
) -> None:
    engine = Celerity(model, dtype, device, threads=1)
    workload = Writer(random_text(TOKENIZER_SIZE)).rollout(prompts=4, num_samples=4)
    verdict = judge(engine, workload, alone=2)
    engine.close()
    assert verdict.breaks(dtype, device) == []


@pytest.mark.parametrize("device", DEVICES)
def test_product_and_peft_compute_the_same_loss_of_the_measured_batch(model: Path, device: str) -> None:
    # The product's adapter has been trained a step of 1e-5, peft's has not.
    workload = training.workload(random_text(TOKENIZER_SIZE), quick=True)
    engine = Celerity(model, "float32", device, threads=1)
    ours = engine.train(workload)
    engine.close()
    assert ours == pytest.approx(Peft(model, "float32", device, threads=1).train(workload), rel=1e-3)
