"""When the worker and the API are killed, samples go on with the published weights, not with those trained since."""

import os
import signal
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from together import Together
from together.post_training import ModelResourcesClient

from stack.stack import Stack
from tests.together.bodies import PROMPT, tokens
from tests.together.publishing import Drawn, drawn, sampled, train, versions
from tests.waiting import eventually


@pytest.fixture
def base_url(fragile: Stack, client: httpx.Client) -> str:  # noqa: ARG001 - the client waits until the stack is whole again
    return f"{fragile.url}/together"


def kill_both(stack: Stack) -> None:
    killed = [stack.processes[name] for name in ("worker", "api")]
    for process in killed:
        process.kill()
    for process in killed:
        stack.run(process.service)
    stack.wait_ready()


def test_what_was_published_survives_by_replay_and_by_snapshot(fragile: Stack, base_url: str) -> None:
    told = story(base_url, lambda: kill_both(fragile))
    assert told == story(base_url, lambda: None)
    assert [segments for _, segments in told] == [[(0, 1)], [(0, 1)], [(0, 1)], [(0, 6)]]
    assert told[0] == told[1] == told[2] != told[3]


def story(base_url: str, strike: Callable[[], None]) -> list[Drawn]:
    """What is sampled once weights are published; after a strike; after one with a snapshot; when published again."""
    with (
        ModelResourcesClient.create(base_url=base_url, api_key="any", base_model="tiny") as resources,
        resources.create_session(lora_config={"rank": 4, "seed": 7}) as session,
    ):
        train(session)
        session.trainer.weights_sync()
        train(session)
        samples = [sampled(session)]
        strike()
        samples.append(sampled(session))
        assert versions(session) == (1, 1, False)
        for _ in range(4):  # a snapshot is taken on the way
            train(session)
        strike()
        samples.append(sampled(session))
        assert session.trainer.weights_sync().weights_version == session.retrieve().step == 6
        return [*samples, sampled(session)]


def test_a_publish_that_was_accepted_when_its_worker_was_killed_is_made(fragile: Stack, base_url: str) -> None:
    prompt: Any = {"model_inputs": [tokens(*PROMPT)], "sampling_params": {"max_tokens": 5, "temperature": 0}}
    with (
        Together(base_url=base_url, api_key="any") as sdk,
        ModelResourcesClient.create(base_url=base_url, api_key="any", base_model="tiny") as resources,
        resources.create_session(lora_config={"rank": 4, "seed": 7}) as session,
    ):
        train(session)
        api, home = sdk.post_training.operations, session.session_id
        os.kill(fragile.processes["worker"].pid, signal.SIGSTOP)
        before = api.sample(home, **prompt, idempotency_key="before")
        sync = api.weights_sync(home, weight_sync_type="WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH", idempotency_key="sync")
        after = api.sample(home, **prompt, idempotency_key="after")
        kill_both(fragile)
        eventually(lambda: api.retrieve_sample(after.id, session_id=home).output is not None)
        outputs = [api.retrieve_sample(each.id, session_id=home).output for each in (before, after)]
        first, published = (drawn(output.results[0]) for output in outputs if output)
        assert sync.output and sync.output.weights_version == 1
        assert (first[1], published[1]) == ([(0, 0)], [(0, 1)])
        assert published == sampled(session)
        assert versions(session) == (1, 1, False)
