"""Publishing weights: what samples use, which version they say it is, and what each type of weights-sync waits for."""

from typing import Any

import pytest
from together import Together
from together.post_training import SessionClient

from tests.together.bodies import PROMPT, tokens
from tests.together.publishing import drawn, sampled, train, versions

SYNCHRONOUS, BACKGROUND, PIPELINE = (
    f"WEIGHT_SYNC_TYPE_{name}" for name in ("SYNCHRONOUS", "BACKGROUND_PUBLISH", "PIPELINE")
)
WAYS = (SYNCHRONOUS, BACKGROUND, PIPELINE)
# About a second of work; greedy, so that the tokens tell the weights.
LONG: Any = {
    "model_inputs": [tokens(*PROMPT)],
    "sampling_params": {"max_tokens": 400, "temperature": 0, "stop": []},
}
NOW = {"Prefer": "wait=0"}


@pytest.mark.parametrize("way", WAYS)
def test_training_moves_samples_once_it_is_published(session: SessionClient, way: Any) -> None:
    first = sampled(session)
    train(session)
    assert sampled(session) == first and first[1] == [(0, 0)]
    assert versions(session) == (0, 0, False)
    assert session.trainer.weights_sync(weight_sync_type=way).weights_version == 1
    after = sampled(session)
    assert after[0] != first[0] and after[1] == [(0, 1)]
    assert versions(session) == (1, 1, False)


@pytest.mark.parametrize("way", WAYS)
def test_a_sample_in_flight_keeps_its_version_and_holds_up_only_who_waits_for_the_publish(
    sdk: Together, session: SessionClient, way: Any
) -> None:
    api, home = sdk.post_training.operations, session.session_id

    def read(operation: Any, **headers: str) -> Any:
        return api.retrieve_sample(operation.id, session_id=home, extra_headers=headers)

    def ended(operation: Any) -> Any:
        while (now := read(operation)).status.endswith(("PENDING", "RUNNING")):
            continue
        (result,) = now.output.results
        return drawn(result)

    undisturbed = ended(api.sample(home, **LONG, idempotency_key="undisturbed"))
    train(session)
    in_flight = api.sample(home, **LONG, idempotency_key="in-flight")
    while read(in_flight, **NOW).status.endswith("PENDING"):
        continue
    sync = api.weights_sync(home, weight_sync_type=way, idempotency_key="sync")
    accepted_after = api.sample(home, **LONG, idempotency_key="after")
    again = api.retrieve_weights_sync(sync.id, session_id=home, extra_headers=NOW)
    assert (versions(session), read(in_flight, **NOW).status) == ((0, 1, True), "TRAINING_OPERATION_STATUS_RUNNING")
    if way == BACKGROUND:
        assert sync.status == again.status == "TRAINING_OPERATION_STATUS_COMPLETED"
        assert sync.output and again.output and sync.output.weights_version == again.output.weights_version == 1
    else:
        assert sync.status == again.status == "TRAINING_OPERATION_STATUS_PENDING"
    assert ended(in_flight) == undisturbed
    published = ended(accepted_after)
    assert (undisturbed[1], published[1]) == ([(0, 0)], [(0, 1)])
    assert published[0] != undisturbed[0]
    assert versions(session) == (1, 1, False)
    assert api.retrieve_weights_sync(sync.id, session_id=home).output.weights_version == 1  # type: ignore[union-attr]


def test_a_publish_in_the_background_whose_session_ends_first_reads_as_failed(
    sdk: Together, session: SessionClient
) -> None:
    api, home = sdk.post_training.operations, session.session_id
    api.sample(home, **LONG, idempotency_key="in-flight")
    sync = api.weights_sync(home, weight_sync_type=BACKGROUND, idempotency_key="sync")  # type: ignore[arg-type]
    assert sync.status == "TRAINING_OPERATION_STATUS_COMPLETED"
    sdk.post_training.sessions.stop(home)
    read = api.retrieve_weights_sync(sync.id, session_id=home)
    assert read.error and read.error.code == "TRAINING_OPERATION_ERROR_CODE_SESSION_NOT_ACTIVE"
