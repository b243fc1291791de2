"""Whole bodies for the OpenAPI document; a test holds each against its schema."""

from typing import Any

OPERATION_ID = "01900a6e-5c1b-7d44-9f0e-2f5f3c1f8f11"

SAMPLE: dict[str, Any] = {
    "prompt": {"chunks": [{"encoded_text": {"tokens": [504, 2365, 28, 216]}}]},
    "num_samples": 2,
    "sampling_params": {"max_tokens": 32, "temperature": 0.75, "stop": ["\n"], "seed": 7},
}
FORWARD_BACKWARD: dict[str, Any] = {
    "samples": [
        {
            "model_input": {"chunks": [{"encoded_text": {"tokens": [504, 2365, 28]}}]},
            "loss_inputs": {
                "target_tokens": {"data": [2365, 28, 216], "dtype": "D_TYPE_INT64"},
                "loss_mask": {"data": [0, 1, 1], "dtype": "D_TYPE_INT64"},
                "grpo_inputs": {
                    "advantages": {"data": [0.0, 0.5, 0.5], "dtype": "D_TYPE_FLOAT32"},
                    "generator_logprobs": {"data": [0.0, -1.25, -0.75], "dtype": "D_TYPE_FLOAT32"},
                },
            },
        }
    ],
    "loss": {"type": "LOSS_TYPE_GRPO", "grpo_params": {"clip_low": 0.2, "clip_high": 0.28, "beta": 0.0}},
}
OPTIM_STEP: dict[str, Any] = {"learning_rate": 0.0003, "adamw_params": {"weight_decay": 0.0}}
LOGGED: dict[str, Any] = {"name": "reward", "step": 3, "value": 0.5}
ACCEPTED: dict[str, Any] = {"operation_id": OPERATION_ID, "status": "TRAINING_OPERATION_STATUS_PENDING"}
SAMPLED: dict[str, Any] = {
    "operation_id": OPERATION_ID,
    "status": "TRAINING_OPERATION_STATUS_COMPLETED",
    "data": {"sequences": [{"tokens": [30, 198, 2], "logprobs": [-0.5, -1.25, -0.03125], "stop_reason": "stop"}]},
}
TRAINING_CHECKPOINT_SAVED: dict[str, Any] = {
    "operation_id": OPERATION_ID,
    "status": "TRAINING_OPERATION_STATUS_COMPLETED",
    "data": {"checkpoint_id": OPERATION_ID},
}
INFERENCE_CHECKPOINT_SAVED: dict[str, Any] = {
    "operation_id": OPERATION_ID,
    "status": "TRAINING_OPERATION_STATUS_COMPLETED",
    "data": {"model_name": "SmolLM2-135M-Instruct-rl-step-42-01900a6e", "checkpoint_id": OPERATION_ID},
}
