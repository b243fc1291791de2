"""One GRPO step through the native API with the client that was generated from its document."""

import sys
from typing import Any

from native_client import Client
from native_client.api.operations import forward_backward, get_optim_step, get_sample, optim_step, sample
from native_client.api.sessions import create_training_session
from native_client.models import CreateSession, ForwardBackwardBody, OptimStepBody, SampleBody

PROMPT = [5, 6, 7]
client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)


def ended(read: Any, operation_id: str) -> Any:
    while not (operation := read.sync(session, operation_id, client=client)).data:
        assert not operation.error, operation.error
    return operation.data


session = create_training_session.sync(client=client, body=CreateSession.from_dict({"base_model": "tiny"})).session_id
asked = {"prompt": {"chunks": [{"encoded_text": {"tokens": PROMPT}}]}, "num_samples": 2}
body = SampleBody.from_dict({**asked, "sampling_params": {"max_tokens": 4, "seed": 1}})
sequences = ended(get_sample, sample.sync(session, client=client, body=body).operation_id).sequences
zeros = [0] * len(PROMPT)
samples = [
    {
        "model_input": {"chunks": [{"encoded_text": {"tokens": PROMPT + each.tokens}}]},
        "loss_inputs": {
            "loss_mask": {"data": zeros + [1] * len(each.tokens)},
            "grpo_inputs": {
                "advantages": {"data": zeros + [1 - 2 * index] * len(each.tokens)},
                "generator_logprobs": {"data": zeros + each.logprobs},
            },
        },
    }
    for index, each in enumerate(sequences)
]
training = ForwardBackwardBody.from_dict({"samples": samples, "loss": {"type": "LOSS_TYPE_GRPO"}})
forward_backward.sync(session, client=client, body=training)
step = optim_step.sync(session, client=client, body=OptimStepBody.from_dict({}))
print(f"step {ended(get_optim_step, step.operation_id).step}")
