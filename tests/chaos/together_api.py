"""The dialect of the official SDK, as a trial uses it: large bodies and results go apart."""

from typing import Any

import httpx
import orjson

from domain.forward_backward import CrossEntropy, ForwardBackwardRequest, WeightedLogprobs
from domain.operation import OperationKind
from domain.optim_step import OptimStepRequest
from domain.sample import SampleRequest
from domain.weights_sync import WeightsSyncRequest
from schemas.together import forward_backward, sampling
from schemas.together.operations import CODES
from testing.bodies import Json, prompt
from tests.chaos.api import End, loss_config
from tests.chaos.native_api import LORA
from tests.chaos.plan import Operation
from tests.chaos.requests import samples_of
from tests.chaos.retrying_client import RetryingClient

PREFIX = "/together/v1/rl"


class TogetherApi:
    """Each session has model resources of its own."""

    def __init__(self, client: RetryingClient) -> None:
        self._client = client
        self._resources: dict[str, str] = {}

    def create_session(self, key: str, seed: int, origin: str | None) -> str:
        resources_id = self._client.post(f"{PREFIX}/model-resources", {"base_model": "tiny"}, f"{key}-resources")["id"]
        body = {"model_resources_id": resources_id, "lora_config": {**LORA, "seed": seed}}
        if origin:
            body["resume_from_checkpoint_id"] = origin
        session_id: str = self._client.post(f"{PREFIX}/training-sessions", body, key)["id"]
        self._resources[session_id] = resources_id
        return session_id

    def send(self, session_id: str, operation: Operation, key: str) -> httpx.Response:
        body = _body(operation.request)
        if operation.uploads:
            body = self._uploaded(session_id, body, key)
        return self._client.try_post(f"{self.session_path(session_id)}/operations/{operation.kind}", body, key)

    def operation_id(self, accepted: Json) -> str:
        return str(accepted["id"])

    def stop(self, session_id: str, key: str, *, with_resources: bool) -> None:
        path = f"{self.session_path(session_id)}/stop"
        if with_resources:
            path = f"{PREFIX}/model-resources/{self._resources[session_id]}/stop?force=true"
        self._client.post(path, {}, key)

    def session_path(self, session_id: str) -> str:
        return f"{PREFIX}/training-sessions/{session_id}"

    def operation_path(self, session_id: str, kind: OperationKind, operation_id: str) -> str:
        return f"{self.session_path(session_id)}/operations/{kind}/{operation_id}"

    def end(self, session_id: str, operation: Operation, operation_id: str) -> End | None:
        if _is_in_background(operation) and self._is_publishing(session_id):
            # It says COMPLETED as soon as it is queued.
            return None
        answer = self._client.get(self.operation_path(session_id, operation.kind, operation_id))
        if answer["status"].endswith("COMPLETED"):
            return End(self._output(session_id, operation.kind, answer["output"]))
        return End(None, CODES[answer["error"]["code"]]) if answer["status"].endswith("FAILED") else None

    def view(self, kind: OperationKind, result: Any) -> Json:
        match kind:
            case OperationKind.SAMPLE:
                view = sampling.SampleResultSchema().dump(sampling.result_view(result))
            case OperationKind.FORWARD_BACKWARD:
                view = forward_backward.ForwardBackwardResultSchema().dump(forward_backward.result_view(result))
            case OperationKind.OPTIM_STEP:
                view = {"step": result.step}
            case OperationKind.WEIGHTS_SYNC:
                view = {"weights_version": result.step}
            case _:
                assert kind is OperationKind.CUSTOM_FORWARD_BACKWARD
                view = {}
        plain: Json = orjson.loads(orjson.dumps(view, option=orjson.OPT_SERIALIZE_NUMPY))
        return plain

    def _uploaded(self, session_id: str, body: Json, key: str) -> Json:
        path = f"{self.session_path(session_id)}/payloads/upload-url"
        upload = self._client.post(path, {}, f"{key}-upload")
        self._client.put(upload["upload_url"], body)
        return {"payload_id": upload["payload_id"]}

    def _is_publishing(self, session_id: str) -> bool:
        policy = self._client.get(self.session_path(session_id))["policy_state"]
        return bool(policy["pending_publish"])

    def _output(self, session_id: str, kind: OperationKind, output: Json) -> Json:
        if kind in (OperationKind.TRAINING_CHECKPOINT, OperationKind.INFERENCE_CHECKPOINT):
            return {"checkpoint_id": output["checkpoint"]["id"]}
        payload_id = output.pop("payload_id", None)
        if payload_id is None:
            return output
        path = f"{self.session_path(session_id)}/payloads/{payload_id}/download-url"
        return self._client.get(self._client.post(path, {}, f"{payload_id}-download")["download_url"])


def _is_in_background(operation: Operation) -> bool:
    return isinstance(operation.request, WeightsSyncRequest) and operation.request.in_background


def _body(request: Any) -> Json:
    match request:
        case ForwardBackwardRequest(loss=WeightedLogprobs()):
            gradients = [{"data": values} for values in samples_of(request, request.weights_T)]
            return {"samples": _samples(request, {}), "gradients": gradients}
        case ForwardBackwardRequest():
            body = {"samples": _samples(request, _loss_inputs(request)), "loss": loss_config(request.loss)}
            return {**body, "forward_only": request.forward_only, "return_loss_fn_outputs": request.return_logprobs}
        case OptimStepRequest():
            names = ("learning_rate", "weight_decay", "grad_clip_norm")
            return {"adam_params": {name: getattr(request, name) for name in names}}
        case WeightsSyncRequest():
            how = "BACKGROUND_PUBLISH" if request.in_background else "SYNCHRONOUS"
            return {"weight_sync_type": f"WEIGHT_SYNC_TYPE_{how}"}
        case SampleRequest():
            params = {"max_tokens": request.params.max_tokens, "temperature": request.params.temperature}
            return {
                "model_inputs": [prompt(tokens.tolist()) for tokens in request.prompts],
                "num_samples": request.num_samples,
                "sampling_params": {**params, "seed": request.seed},
                "prompt_logprobs": request.prompt_logprobs,
            }
    return {}


def _loss_inputs(request: ForwardBackwardRequest) -> Json:
    weights = "weights" if isinstance(request.loss, CrossEntropy) else "mask"
    arrays = {
        weights: request.weights_T,
        "logprobs": request.generator_logprobs_T,
        "advantages": request.advantages_T,
        "reference_logprobs": request.reference_logprobs_T,
    }
    return {name: samples_of(request, array) for name, array in arrays.items() if array is not None}


def _samples(request: ForwardBackwardRequest, arrays: Json) -> list[Json]:
    targets = samples_of(request, request.targets_T)
    return [
        {
            "model_input": prompt(tokens),
            "loss_fn_inputs": {
                "target_tokens": {"data": targets[index], "dtype": "int64"},
                **{name: {"data": values[index], "dtype": "float32"} for name, values in arrays.items()},
            },
        }
        for index, tokens in enumerate(samples_of(request, request.tokens_T))
    ]
