"""The native dialect, as a trial uses it."""

from typing import Any

import httpx
import orjson

from domain.forward_backward import ForwardBackwardRequest, Grpo
from domain.operation import ErrorCode, OperationKind
from domain.optim_step import OptimStepRequest
from domain.sample import SampleRequest
from schemas.forward_backward import ForwardBackwardResultSchema
from schemas.optim_step import OptimStepResultSchema
from schemas.sampling import SampleResultSchema
from testing.bodies import SESSIONS, Json, prompt, sample_body, step_body
from tests.chaos.api import End, loss_config
from tests.chaos.plan import Operation
from tests.chaos.requests import samples_of
from tests.chaos.retrying_client import RetryingClient

LORA = {"rank": 4, "alpha": 8, "dropout": 0.1}
CODE_PREFIX = "TRAINING_OPERATION_ERROR_CODE_"
VIEWS = {
    OperationKind.SAMPLE: SampleResultSchema(),
    OperationKind.FORWARD_BACKWARD: ForwardBackwardResultSchema(),
    OperationKind.OPTIM_STEP: OptimStepResultSchema(),
}


class NativeApi:
    def __init__(self, client: RetryingClient) -> None:
        self._client = client

    def create_session(self, key: str, seed: int, origin: str | None) -> str:  # noqa: ARG002 - the server draws it
        body = {"base_model": "tiny", "lora_config": LORA, "checkpoint_id": origin}
        session_id: str = self._client.post(SESSIONS, body, key)["session_id"]
        return session_id

    def send(self, session_id: str, operation: Operation, key: str) -> httpx.Response:
        path = f"{self.session_path(session_id)}:{operation.kind}"
        return self._client.try_post(path, _body(operation.request), key)

    def operation_id(self, accepted: Json) -> str:
        return str(accepted["operation_id"])

    def cancel(self, session_id: str, operation_id: str, key: str) -> bool:
        """Whether it was cancelled; it is not once it has begun."""
        path = f"{self.session_path(session_id)}/operations/{operation_id}:cancel"
        response = self._client.try_post(path, {}, key)
        assert response.status_code in (200, 400), response.text
        return response.status_code == 200

    def log(self, session_id: str, name: str, step: int, value: float, key: str) -> None:
        body = {"name": name, "step": step, "value": value}
        self._client.post(f"{self.session_path(session_id)}:log", body, key)

    def stop(self, session_id: str, key: str, *, with_resources: bool) -> None:  # noqa: ARG002 - there are none
        self._client.post(f"{self.session_path(session_id)}:stop", {}, key)

    def session_path(self, session_id: str) -> str:
        return f"{SESSIONS}/{session_id}"

    def operation_path(self, session_id: str, kind: OperationKind, operation_id: str) -> str:
        return f"{self.session_path(session_id)}/operations/{kind}/{operation_id}"

    def end(self, session_id: str, operation: Operation, operation_id: str) -> End | None:
        answer = self._client.get(self.operation_path(session_id, operation.kind, operation_id))
        if answer["status"].endswith("COMPLETED"):
            return End(answer["data"])
        if answer["status"].endswith("FAILED"):
            return End(None, ErrorCode(answer["error"]["code"].removeprefix(CODE_PREFIX)))
        return None

    def view(self, kind: OperationKind, result: Any) -> Json:
        view: Json = orjson.loads(orjson.dumps(VIEWS[kind].dump(result), option=orjson.OPT_SERIALIZE_NUMPY))
        return view


def _body(request: Any) -> Json:
    match request:
        case ForwardBackwardRequest():
            return _train_body(request)
        case OptimStepRequest():
            return step_body(request.learning_rate, weight_decay=request.weight_decay)
        case SampleRequest():
            params = {"max_tokens": request.params.max_tokens, "temperature": request.params.temperature}
            body = sample_body(request.prompts[0].tolist(), request.num_samples, seed=request.seed, **params)
            return {**body, "prompt_logprobs": request.prompt_logprobs}
    return {}


def _train_body(request: ForwardBackwardRequest) -> Json:
    names = {
        "advantages": request.advantages_T,
        "generator_logprobs": request.generator_logprobs_T,
        "reference_logprobs": request.reference_logprobs_T,
    }
    policy = {name: samples_of(request, array) for name, array in names.items() if array is not None}
    field = "grpo_inputs" if isinstance(request.loss, Grpo) else "policy_inputs"
    samples = []
    for index, tokens in enumerate(samples_of(request, request.tokens_T)):
        inputs: Json = {
            "target_tokens": {"data": samples_of(request, request.targets_T)[index]},
            "loss_mask": {"data": [int(weight) for weight in samples_of(request, request.weights_T)[index]]},
        }
        if policy:
            inputs[field] = {name: {"data": arrays[index]} for name, arrays in policy.items()}
        samples.append({"model_input": prompt(tokens), "loss_inputs": inputs})
    return {"samples": samples, "loss": loss_config(request.loss)}
