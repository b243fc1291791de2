"""SkyRL-tx, in process: the JAX backend that its engine calls, without the HTTP server and the database before it."""

import json
from pathlib import Path

from tx.tinker import types
from tx.tinker.backends.jax import JaxBackend, JaxBackendConfig

from benchmarks.workloads import (
    ALPHA,
    GENERATOR_LOGPROB,
    LEARNING_RATE,
    RANK,
    Sampling,
    Training,
)

ADAM = types.AdamParams(learning_rate=LEARNING_RATE, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1)
PPO = types.LOSS_TYPES["ppo"]


class SkyrlTx:
    """Its PPO loss is the clipped ratio that GRPO has, with other bounds and another mean."""

    def __init__(self, model: Path, dtype: str) -> None:
        self._backend = JaxBackend(str(_in_dtype(model, dtype)), JaxBackendConfig(max_lora_adapters=2))
        self._backend.create_model("0", types.LoraConfig(rank=RANK, alpha=ALPHA, seed=0))

    def sample(self, workload: Sampling) -> int:
        rows = [request for request in workload.requests for _ in range(request.num_samples)]
        batch = types.PreparedSampleBatch(
            all_prompts=[row.prompt for row in rows],
            all_sampling_params=[
                types.SamplingParams(temperature=1.0, max_tokens=row.max_tokens, seed=seed)
                for seed, row in enumerate(rows)
            ],
            all_model_ids=[""] * len(rows),
            all_checkpoint_ids=[""] * len(rows),
            all_checkpoint_paths=[""] * len(rows),
            needs_prompt_logprobs=False,
            request_batch_slices=[("all", "", 0, len(rows), False)],
        )
        return sum(len(sequence.tokens) for sequence in self._backend.sample(batch)["all"].sequences)

    def train(self, workload: Training) -> float:
        samples, lengths = workload.samples, [sample.length for sample in workload.samples]
        batch = types.PreparedModelPassBatch(
            all_input_ids=[sample.tokens[:-1] for sample in samples],
            all_targets=[sample.tokens[1:] for sample in samples],
            all_token_weights=[[float(t >= s.trained_from) for t in range(s.length)] for s in samples],
            all_sampling_logprobs=[[GENERATOR_LOGPROB] * length for length in lengths],
            all_advantages=[[sample.advantage] * sample.length for sample in samples],
            all_model_ids=["0"] * len(samples),
            all_loss_fn_types=[PPO] * len(samples),
            all_loss_fn_configs=[None] * len(samples),
            request_batch_slices=[("all", "0", 0, len(samples))],
        )
        outputs = self._backend.forward_backward(batch)["all"].loss_fn_outputs
        self._backend.optim_step("0", types.OptimStepInput(adam_params=ADAM))
        return sum(sum(output["elementwise_loss"]["data"]) for output in outputs)


def _in_dtype(model: Path, dtype: str) -> Path:
    """The model again with another dtype in its config, from which alone the backend takes it."""
    folder = model.with_name(f"{model.name}-{dtype}")
    folder.mkdir(exist_ok=True)
    for file in model.iterdir():
        link = folder / file.name
        link.unlink(missing_ok=True)
        if file.name != "config.json":
            link.symlink_to(file.resolve())
    config = json.loads((model / "config.json").read_text())
    # `dtype` where transformers 5 writes it, `torch_dtype` where 4 reads it.
    (folder / "config.json").write_text(json.dumps(config | {"dtype": dtype, "torch_dtype": dtype}))
    return folder


def load(model: Path, dtype: str, device: str, threads: int) -> SkyrlTx:  # noqa: ARG001 - its threads come from the affinity
    assert device == "cpu", "its environment holds JAX for the CPU"
    return SkyrlTx(model, dtype)
