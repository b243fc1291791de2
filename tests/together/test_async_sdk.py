"""The async SDK: every call of its resources, and many of them at once."""

import asyncio
from typing import Any

from together import AsyncTogether
from together.post_training import ModelResourcesClient, SessionClient

from tests.together.bodies import PROMPT, loss, tokens

MODEL = "tiny"
TENSOR = {"target_tokens": {"data": [6, 7, 8], "dtype": "int64"}, "weights": {"data": [1.0] * 3, "dtype": "float32"}}
CROSS_ENTROPY = loss("LOSS_TYPE_CROSS_ENTROPY")
SAMPLE: Any = {"model_input": tokens(*PROMPT[:-1]), "loss_fn_inputs": TENSOR}


async def end(read: Any, operation: Any, session_id: str) -> Any:
    while operation.status.endswith(("PENDING", "RUNNING")):
        operation = await read(operation.id, session_id=session_id)
    assert operation.status.endswith("COMPLETED"), operation.error
    return operation.output


async def every_operation(sdk: AsyncTogether, session_id: str) -> list[Any]:
    api = sdk.post_training.operations
    asked: list[tuple[Any, Any, dict[str, Any]]] = [
        (
            api.forward_backward,
            api.retrieve_forward_backward,
            {"samples": [SAMPLE], "loss": loss("LOSS_TYPE_CROSS_ENTROPY")},
        ),
        (
            api.custom_forward_backward,
            api.retrieve_custom_forward_backward,
            {"samples": [SAMPLE], "gradients": [{"data": [0.1, 0.2, 0.3]}]},
        ),
        (api.optim_step, api.retrieve_optim_step, {"adam_params": {"learning_rate": 1e-3}}),
        (api.weights_sync, api.retrieve_weights_sync, {"weight_sync_type": "WEIGHT_SYNC_TYPE_SYNCHRONOUS"}),
        (api.sample, api.retrieve_sample, {"model_inputs": [tokens(1)], "sampling_params": {"max_tokens": 2}}),
        (api.create_training_checkpoint, api.retrieve_training_checkpoint, {}),
        (api.create_inference_checkpoint, api.retrieve_inference_checkpoint, {}),
    ]
    accepted = [await submit(session_id, idempotency_key=str(k), **body) for k, (submit, _, body) in enumerate(asked)]
    return [await end(read, each, session_id) for (_, read, _), each in zip(asked, accepted, strict=True)]


async def story(sdk: AsyncTogether) -> None:
    api = sdk.post_training
    assert MODEL in [each.base_model for each in (await api.supported_models.get()).data]
    assert (await api.model_resources.estimate_cost(base_model=MODEL)).price_per_hour == 0.0
    resources = await api.model_resources.create(base_model=MODEL)
    session = await api.sessions.create(model_resources_id=resources.id)
    outputs = await every_operation(sdk, session.id)
    assert (outputs[2].step, outputs[3].weights_version) == (1, 1)
    training, inference = outputs[5].checkpoint, outputs[6].checkpoint
    listed = await api.checkpoints.list(session_id=session.id, base_model=MODEL)
    assert [each.id for each in listed.data] == [inference.id, training.id]
    only = await api.checkpoints.list(session_id=session.id, type="CHECKPOINT_TYPE_TRAINING", limit=1)
    assert [each.id for each in only.data] == [training.id]
    assert (await api.checkpoints.retrieve(training.id)).lora_rank == 8
    files = await api.checkpoints.download(inference.id, variant="CHECKPOINT_VARIANT_ADAPTER")
    assert {file.filename for file in files.data} == {"adapter_config.json", "adapter_model.safetensors"}
    assert (await api.sessions.update(session.id, display_name="x")).display_name == "x"
    assert session.id in [each.id for each in (await api.sessions.list()).data or []]
    await api.model_resources.extend_expiry(resources.id, seconds=60)
    assert resources.id in [each.id for each in (await api.model_resources.list()).data]
    await api.sessions.stop(session.id)
    await api.model_resources.stop(resources.id, force=True)
    assert (await api.model_resources.retrieve(resources.id)).status.endswith("STOPPED")


def test_every_call_of_the_async_resources(async_sdk: AsyncTogether) -> None:
    asyncio.run(story(async_sdk))


def test_many_samples_wait_at_once_while_others_are_served(session: SessionClient) -> None:
    async def all_of_them() -> list[Any]:
        asked = [session.generator.sample_async(tokens(k + 1), 1, {"max_tokens": 20}) for k in range(64)]
        results = await asyncio.gather(session.retrieve_async(), *asked)
        return results[1:]

    assert len(asyncio.run(all_of_them())) == 64


def test_handles_attach_and_detach(door: str, session: SessionClient, resources: ModelResourcesClient) -> None:
    again = SessionClient.attach(session_id=session.session_id, base_url=door, api_key="any")
    assert again.has_generator and again.retrieve().id == session.session_id
    again.detach()
    other = ModelResourcesClient.attach(model_resources_id=resources.model_resources_id, base_url=door, api_key="any")
    assert other.extend_expiry(seconds=60).id == resources.model_resources_id
    other.detach()
    assert session.retrieve().status == "TRAINING_SESSION_STATUS_RUNNING"
