"""What an operation costs through the official SDK on a tiny model: `python -m benchmarks.sdk_overhead`.

Milliseconds from the call to its result, one call at a time, so what is measured is the way there and back.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from together.post_training import ModelResourcesClient

from benchmarks.tiny_stack import tiny_stack

ROUNDS = 100
SETTINGS = {"CELERITY_DEVICE": "cpu", "CELERITY_TORCH_THREADS": "1"}
PROMPT: Any = {"chunks": [{"encoded_text": {"tokens": [1, 2, 3]}}]}
SAMPLE: Any = {"model_input": PROMPT, "loss_fn_inputs": {"target_tokens": [2, 3, 4], "weights": [1.0, 1.0, 1.0]}}


def milliseconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def main() -> None:
    with (
        tiny_stack(SETTINGS) as stack,
        ModelResourcesClient.create(base_url=f"{stack.url}/together", api_key="any", base_model="tiny") as resources,
        resources.create_session() as session,
    ):
        calls: dict[str, Callable[[], Any]] = {
            "forward_backward": lambda: session.trainer.forward_backward(
                samples=[SAMPLE], loss={"type": "LOSS_TYPE_CROSS_ENTROPY"}
            ),
            "optim_step": session.trainer.optim_step,
            "weights_sync": session.trainer.weights_sync,
            "sample": lambda: session.generator.sample(PROMPT, 1, {"max_tokens": 1}),
        }
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                taken[name].append(milliseconds(call))
    for name, times in taken.items():
        print(f"{name:18} median {median(times):6.1f} ms, p90 {sorted(times)[len(times) * 9 // 10]:6.1f} ms")


if __name__ == "__main__":
    main()
