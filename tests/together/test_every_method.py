"""Every public method of the SDK's post-training resources, clients and Tinker bridge; sync, and async."""

import asyncio
from functools import partial
from typing import Any

import together.post_training.tinker as tinker
import torch
from together import APIStatusError, AsyncTogether, Together
from together.post_training import Generator, ModelResourcesClient, SessionClient, Trainer

from tests.together.bodies import PROMPT, loss, supervised, tokens
from tests.together.storytelling import RESOURCES, Story, public, tell, tell_async

MODEL = "tiny"
LORA: Any = {"rank": 4, "seed": 7}
CROSS_ENTROPY = loss("LOSS_TYPE_CROSS_ENTROPY")
TENSORS = {"target_tokens": {"data": [6, 7, 8], "dtype": "int64"}, "weights": {"data": [1.0] * 3, "dtype": "float32"}}
SAMPLE: Any = {"model_input": tokens(*PROMPT[:-1]), "loss_fn_inputs": TENSORS}
GRADIENT: Any = {"data": [0.1, 0.2, 0.3]}
OPERATIONS: dict[str, dict[str, Any]] = {
    "forward_backward": {"samples": [SAMPLE], "loss": CROSS_ENTROPY},
    "custom_forward_backward": {"samples": [SAMPLE], "gradients": [GRADIENT]},
    "optim_step": {"adam_params": {"learning_rate": 1e-3}},
    "weights_sync": {"weight_sync_type": "WEIGHT_SYNC_TYPE_SYNCHRONOUS"},
    "sample": {"model_inputs": [tokens(1)], "sampling_params": {"max_tokens": 2}},
    "create_training_checkpoint": {},
    "create_inference_checkpoint": {},
}


def story_of_resources(api: Any) -> Story:
    models = yield partial(api.supported_models.get)
    assert MODEL in [each.base_model for each in models.data]
    assert (yield partial(api.model_resources.estimate_cost, base_model=MODEL)).price_per_hour == 0.0
    home = (yield partial(api.model_resources.create, base_model=MODEL)).id
    session = yield partial(api.sessions.create, model_resources_id=home)
    yield from story_of_operations(api.operations, session.id)
    yield from story_of_checkpoints(api.checkpoints, session.id)
    assert (yield partial(api.sessions.update, session.id, display_name="x")).display_name == "x"
    assert (yield partial(api.sessions.retrieve, session.id)).step == 1
    assert session.id in [each.id for each in (yield partial(api.sessions.list)).data]
    yield partial(api.model_resources.extend_expiry, home, seconds=60)
    assert home in [each.id for each in (yield partial(api.model_resources.list)).data]
    yield partial(api.sessions.stop, session.id)
    yield partial(api.model_resources.stop, home, force=True)
    assert (yield partial(api.model_resources.retrieve, home)).status.endswith("STOPPED")
    yield from story_of_fp4(api.prepare_for_fp4_inference)


def story_of_operations(api: Any, session_id: str) -> Story:
    outputs = []
    for name, body in OPERATIONS.items():
        operation = yield partial(getattr(api, name), session_id, idempotency_key=name, **body)
        read = getattr(api, f"retrieve_{name.removeprefix('create_')}")
        while operation.status.endswith(("PENDING", "RUNNING")):
            operation = yield partial(read, operation.id, session_id=session_id)
        assert operation.status.endswith("COMPLETED"), operation.error
        outputs.append(operation.output)
    assert (outputs[2].step, outputs[3].weights_version) == (1, 1)


def story_of_checkpoints(api: Any, session_id: str) -> Story:
    inference, training = (yield partial(api.list, session_id=session_id, base_model=MODEL)).data
    only = yield partial(api.list, session_id=session_id, type="CHECKPOINT_TYPE_TRAINING", limit=1)
    assert [each.id for each in only.data] == [training.id]
    assert (yield partial(api.retrieve, training.id)).lora_rank == 8
    files = yield partial(api.download, inference.id, variant="CHECKPOINT_VARIANT_ADAPTER")
    assert {file.filename for file in files.data} == {"adapter_config.json", "adapter_model.safetensors"}


def story_of_fp4(api: Any) -> Story:
    calls = [
        api.list,
        *(partial(submit, inputs={"model_object_id": "x"}) for submit in (api.create, api.estimate_cost)),
    ]
    calls += [partial(read, "shp-quant-1") for read in (api.retrieve, api.cancel, api.list_events)]
    for call in calls:
        refusal = yield partial(call)
        assert isinstance(refusal, APIStatusError) and refusal.status_code == 404 and "not offered" in str(refusal)


def story_of_clients(base_url: str) -> Story:
    there: Any = {"base_url": base_url, "api_key": "any"}
    resources = yield partial(ModelResourcesClient.create, base_model=MODEL, **there)
    home = resources.model_resources_id
    assert (yield partial(resources.retrieve)).id == (yield partial(resources.extend_expiry, seconds=60)).id == home
    session = yield partial(resources.create_session, lora_config=LORA)
    trainer, generator = session.trainer, session.generator
    yield partial(trainer.forward, samples=[supervised(PROMPT)], loss=CROSS_ENTROPY)
    yield partial(trainer.forward_backward, samples=[supervised(PROMPT)], loss=CROSS_ENTROPY)
    yield partial(trainer.custom_forward_backward, samples=[supervised(PROMPT)], gradients=[GRADIENT])
    assert (yield partial(trainer.optim_step)).step == (yield partial(trainer.weights_sync)).weights_version == 1
    sampled = yield partial(generator.sample, tokens(*PROMPT), 2, {"max_tokens": 2, "seed": 1})
    (alone,) = yield partial(generator.sample_batch, [tokens(*PROMPT)], 2, {"max_tokens": 2, "seed": 1})
    assert [each.tokens for each in alone.sequences] == [each.tokens for each in sampled.sequences]
    (batch,) = yield partial(generator.compute_logprobs_batch, [tokens(*PROMPT)])
    assert (yield partial(generator.compute_logprobs, tokens(*PROMPT))) == batch
    saved = yield partial(session.create_training_checkpoint)
    yield partial(session.create_inference_checkpoint)
    resumed = yield partial(SessionClient.create, model_resources_id=home, resume_from_checkpoint_id=saved.id, **there)
    assert (yield partial(resumed.retrieve)).step == 1
    yield partial(resumed.stop)
    attached = yield partial(SessionClient.attach, session_id=session.session_id, **there)
    yield partial(attached.detach)
    other = yield partial(ModelResourcesClient.attach, model_resources_id=home, **there)
    yield partial(other.detach)
    yield partial(session.stop)
    yield partial(resources.stop, force=True)


def story_of_the_bridge(service: tinker.ServiceClient) -> Story:
    client = yield partial(service.create_lora_training_client, MODEL, rank=4, seed=1)
    prompt = tinker.ModelInput.from_ints(PROMPT[:-1])
    datum = tinker.Datum(model_input=prompt, loss_fn_inputs={"target_tokens": PROMPT[1:], "weights": [1.0] * 3})
    scored = yield partial(client.forward, [datum], "cross_entropy")
    assert len(scored.loss_fn_outputs[0]["logprobs"].data) == 3
    assert (yield partial(client.forward_backward, [datum], "cross_entropy")).metrics["loss:sum"] > 0
    custom = yield partial(client.forward_backward_custom, [datum], negative_logprobs)
    assert custom.metrics["own"] > 0
    yield partial(client.optim_step, tinker.AdamParams(learning_rate=1e-3))
    sampler = yield partial(client.save_weights_and_get_sampling_client)
    sampled = yield partial(sampler.sample, prompt, 2, tinker.SamplingParams(max_tokens=2, stop=["zzz"]))
    assert len(sampled.sequences) == 2
    assert len((yield partial(sampler.compute_logprobs, prompt))) == 3
    state = (yield partial(client.save_state, "named")).path
    assert (yield partial(client.save_weights_for_sampler, "named")).path != state
    yield partial(client.close)


def negative_logprobs(_: list[Any], logprobs: list[torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
    loss = -logprobs[0].sum()
    return loss, {"own": float(loss.detach())}


def every_resource(api: Any) -> set[str]:
    return {name for each in RESOURCES for name in public(type(getattr(api, each)))}


EVERY_CLIENT = set().union(*(public(kind) for kind in (ModelResourcesClient, SessionClient, Trainer, Generator)))
EVERY_OF_THE_BRIDGE = set().union(*(public(kind) for kind in (tinker.TrainingClient, tinker.SamplingClient)))


def test_every_method_of_the_resources(sdk: Together) -> None:
    assert tell(story_of_resources(sdk.post_training)) == every_resource(sdk.post_training)


def test_every_async_method_of_the_resources(async_sdk: AsyncTogether) -> None:
    called = asyncio.run(tell_async(story_of_resources(async_sdk.post_training)))
    assert called == every_resource(async_sdk.post_training)


def test_every_method_of_the_clients(base_url: str) -> None:
    assert tell(story_of_clients(base_url)) == EVERY_CLIENT


def test_every_async_method_of_the_clients(base_url: str) -> None:
    assert asyncio.run(tell_async(story_of_clients(base_url))) == EVERY_CLIENT


def test_every_method_of_the_bridge(base_url: str) -> None:
    called = tell(story_of_the_bridge(tinker.ServiceClient(base_url=base_url, api_key="any")))
    assert called - {"ServiceClient.create_lora_training_client"} == EVERY_OF_THE_BRIDGE


def test_every_async_method_of_the_bridge(base_url: str) -> None:
    called = asyncio.run(tell_async(story_of_the_bridge(tinker.ServiceClient(base_url=base_url, api_key="any"))))
    assert called - {"ServiceClient.create_lora_training_client"} == EVERY_OF_THE_BRIDGE
