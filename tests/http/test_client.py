"""The Python client over a real socket: typed results, and retries that do nothing twice."""

from typing import Any

import httpx
import numpy as np
import pytest
from redis import Redis

from celerity_client import ApiError, Client, OperationFailedError, Session, example, grpo_example, results
from celerity_client.progress import Bar, Steps
from celerity_client.results import Sequence, Stepped
from domain.forward_backward import ForwardBackwardResult
from domain.operation import ErrorCode, OperationError
from domain.optim_step import OptimStepResult
from domain.sample import SampleResult, StopReason
from domain.sample import Sequence as Sampled
from tests.http.conftest import CARD, WORKER, Api


@pytest.fixture
def client(url: str) -> Any:
    with Client(url, retry_seconds=5) as client:
        yield client


@pytest.fixture
def session(client: Client, api: Api) -> Session:
    session = client.create_session(CARD.name, rank=4)
    api.begin(session.path)
    return session


def test_a_loop_is_submitted_ahead_and_its_results_are_typed(session: Session, api: Api) -> None:
    sampled = session.sample([1, 2], num_samples=1, max_tokens=2)
    trained = session.grpo([grpo_example([1, 2], [3, 4], [-1.0, -2.0], 0.5)], agg_type="token_mean")
    stepped = session.optim_step(0.01)
    tokens = Sampled(np.array([3, 4], np.int32), np.array([-1, -2], np.float32), StopReason.LENGTH)
    api.finish(sampled.id, SampleResult((tokens,)))
    api.finish(trained.id, ForwardBackwardResult(loss=0.25, metrics={"entropy/mean": 1.5}))
    api.finish(stepped.id, OptimStepResult(step=1, metrics={"grad_norm": 2.0}))
    assert sampled.result().sequences == [Sequence([3, 4], [-1.0, -2.0], "length")]
    assert (trained.result().loss, trained.result().metrics) == (0.25, {"entropy/mean": 1.5})
    assert stepped.result() == Stepped(1, {"grad_norm": 2.0})
    assert session.read()["lora_config"]["rank"] == 4


def test_results_come_in_the_order_of_their_operations_beside_a_bar(
    session: Session, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [session.optim_step() for _ in range(3)]
    for number, step in enumerate(steps, start=1):
        api.finish(step.id, OptimStepResult(step=number, metrics={}))
    assert [stepped.step for stepped in results(steps, title="stepping")] == [1, 2, 3]
    assert capsys.readouterr().err == "", "nobody asked for a bar"
    results(steps, progress=True, title="stepping")
    shown = capsys.readouterr().err
    assert "stepping" in shown and "3/3" in shown


def test_steps_are_counted_from_one_and_show_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps(3)
    for step in steps:
        steps.show(reward=step / 4)
    shown = capsys.readouterr().err
    assert "3/3" in shown and "reward=0.750" in shown


def test_a_bar_of_work_that_is_learnt_on_the_way_tells_its_phase_and_share(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        bar.extend(4)
        bar.say("sampling")
        bar.moved(1)
        bar.print("measured")
        bar.show(reward=0.25)
        bar.extend(1)
        bar.moved(4)
    shown = capsys.readouterr().err
    assert "measured\n" in shown
    assert "sampling:  25%" in shown and "sampling: 100%" in shown and "reward=0.250" in shown


def test_an_example_has_an_entry_for_each_token() -> None:
    made = grpo_example([1, 2], [3], [-0.5], 2.0)
    assert made["model_input"]["chunks"] == [{"encoded_text": {"tokens": [1, 2, 3]}}]
    inputs = made["loss_inputs"]
    assert inputs["loss_mask"]["data"] == [0, 0, 1]
    assert inputs["grpo_inputs"]["advantages"]["data"] == [0.0, 0.0, 2.0]
    assert inputs["grpo_inputs"]["generator_logprobs"]["data"] == [0.0, 0.0, -0.5]
    assert example([1, 2], [0, 1])["loss_inputs"] == {"loss_mask": {"data": [0, 1]}}


def test_a_failed_operation_and_a_refused_request_are_told_apart(session: Session, client: Client, api: Api) -> None:
    step = session.optim_step()
    api.finish(step.id, OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated"))
    with pytest.raises(OperationFailedError, match="INVALID_INPUT: nothing accumulated"):
        step.result()
    with pytest.raises(ApiError, match=r"400: .*num_samples") as refused:
        session.sample([1], num_samples=0)
    assert refused.value.status == 400
    with pytest.raises(ApiError, match="404"):
        client.session("unknown").read()


def test_a_session_may_be_asked_within_a_time(session: Session, api: Api) -> None:
    hasty = session.within(2.5)
    for operation, seconds in ((hasty.sample([1, 2], max_tokens=2), 2.5), (session.optim_step(), 600.0)):
        claim = api.store.claims.claim(operation.id, WORKER, "fence")
        assert claim and claim.timeout_seconds == seconds
        api.store.claims.finish(claim, OperationError(ErrorCode.TIMEOUT, "it took too long"))
        with pytest.raises(OperationFailedError, match="TIMEOUT: it took too long"):
            operation.result()


class Flaky(httpx.BaseTransport):
    """Sends a request on, and loses the answer of every first try."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport()
        self.keys: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.inner.handle_request(request)
        key = request.headers.get("Idempotency-Key", "")
        if request.method == "POST" and key not in self.keys:
            self.keys.append(key)
            answer.read()
            raise httpx.ReadError("the connection broke before the answer")
        return answer


def test_a_post_whose_answer_was_lost_is_sent_again_and_takes_effect_once(url: str, api: Api) -> None:
    with Client(url, retry_seconds=5, transport=Flaky()) as client:
        session = client.create_session(CARD.name)
        operation = session.optim_step()
    assert len(api.client.get("/v1/rl/training-sessions").json) == 1
    assert [each["operation_id"] for each in api.client.get(f"{session.path}/operations").json] == [operation.id]


def test_a_call_is_not_repeated_for_ever(api: Api) -> None:
    assert isinstance(api.redis, Redis)
    with (
        Client("http://127.0.0.1:1", retry_seconds=0.5) as client,
        pytest.raises(ApiError, match="no answer") as refused,
    ):
        client.models()
    assert refused.value.status == 0
