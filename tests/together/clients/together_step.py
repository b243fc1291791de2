"""One GRPO step through Together's API with the client that was generated from its document."""

import sys
from typing import Any

from together_client import Client
from together_client.api.together_model_resources import create_model_resources
from together_client.api.together_operations import forward_backward, get_optim_step, get_sample, optim_step, sample
from together_client.api.together_sessions import create_session
from together_client.models import (
    CreateModelResources,
    CreateSession,
    ForwardBackwardBody,
    OptimStepBody,
    SampleBody,
)

PROMPT = [5, 6, 7]
client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)


def ended(read: Any, operation_id: str) -> Any:
    while not (operation := read.sync(session, operation_id, client=client)).output:
        assert not operation.error, operation.error
    return operation.output


def floats(values: list[float]) -> dict[str, Any]:
    return {"data": [0.0] * (len(PROMPT) - 1) + values, "dtype": "float32"}


resources = create_model_resources.sync(client=client, body=CreateModelResources.from_dict({"base_model": "tiny"}))
session = create_session.sync(client=client, body=CreateSession.from_dict({"model_resources_id": resources.id})).id
asked = {"model_inputs": [{"chunks": [{"encoded_text": {"tokens": PROMPT}}]}], "num_samples": 2}
body = SampleBody.from_dict({**asked, "sampling_params": {"max_tokens": 4, "seed": 1}})
(result,) = ended(get_sample, sample.sync(session, client=client, body=body).id).results
samples = [
    {
        "model_input": {"chunks": [{"encoded_text": {"tokens": PROMPT + each.tokens[:-1]}}]},
        "loss_fn_inputs": {
            "target_tokens": {"data": PROMPT[1:] + each.tokens, "dtype": "int64"},
            "mask": floats([1.0] * len(each.tokens)),
            "advantages": floats([1.0 - 2 * index] * len(each.tokens)),
            "logprobs": floats(each.logprobs),
        },
    }
    for index, each in enumerate(result.sequences)
]
training = ForwardBackwardBody.from_dict({"samples": samples, "loss": {"type": "LOSS_TYPE_GRPO"}})
forward_backward.sync(session, client=client, body=training)
step = optim_step.sync(session, client=client, body=OptimStepBody.from_dict({}))
print(f"step {ended(get_optim_step, step.id).step}")
