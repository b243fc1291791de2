"""The Python client where an event loop runs: awaited, or as it is, as in a notebook's cell."""

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from celerity_client import ApiError, AsyncClient, AsyncSession, Client, OperationFailedError, async_results
from celerity_client.results import Stepped
from domain.operation import ErrorCode, OperationError
from domain.optim_step import OptimStepResult
from tests.http.conftest import CARD, Api

CLIENT = Path(__file__).resolve().parents[2] / "client"


def told(url: str, api: Api, story: Callable[[AsyncSession], Awaitable[None]]) -> None:
    """The story of a new session."""

    async def run() -> None:
        async with AsyncClient(url, retry_seconds=5) as client:
            session = await client.create_session(CARD.name, rank=4)
            api.begin(session.path)
            await story(session)

    asyncio.run(run())


def test_operations_are_submitted_ahead_and_awaited_in_order(
    url: str, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story(session: AsyncSession) -> None:
        steps = [await session.optim_step() for _ in range(3)]
        for number, step in enumerate(steps, start=1):
            api.finish(step.id, OptimStepResult(step=number, metrics={}))
        assert await steps[0].result() == Stepped(1, {})
        assert [stepped.step for stepped in await async_results(steps, progress=True)] == [1, 2, 3]
        assert (await session.read())["lora_config"]["rank"] == 4

    told(url, api, story)
    assert "3/3" in capsys.readouterr().err


def test_while_one_task_waits_others_go_on(url: str, api: Api) -> None:
    async def story(session: AsyncSession) -> None:
        step = await session.optim_step()
        waiting = asyncio.create_task(step.result())
        await session.log("reward", 1, 0.5)
        assert not waiting.done()
        api.finish(step.id, OptimStepResult(step=1, metrics={}))
        assert (await waiting).step == 1

    told(url, api, story)


def test_refusals_and_failures_are_those_of_the_blocking_client(url: str, api: Api) -> None:
    async def story(session: AsyncSession) -> None:
        step = await session.within(2.5).optim_step()
        api.finish(step.id, OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated"))
        with pytest.raises(OperationFailedError, match="INVALID_INPUT: nothing accumulated"):
            await step.result()
        with pytest.raises(ApiError, match=r"400: .*num_samples"):
            await session.sample([1], num_samples=0)

    told(url, api, story)


def test_a_post_whose_answer_was_lost_is_sent_again_under_its_key() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadError("the connection broke before the answer")
        return httpx.Response(200, json={"session_id": "one"})

    async def run() -> None:
        async with AsyncClient("http://of.the.test", transport=httpx.MockTransport(answer)) as client:
            assert (await client.create_session("tiny")).id == "one"

    asyncio.run(run())
    assert len(keys) == 2 and keys[0] == keys[1]


def test_the_blocking_client_works_where_a_loop_runs(url: str, api: Api) -> None:
    async def cell() -> None:
        with Client(url) as client:
            session = client.create_session(CARD.name)
            step = session.optim_step()
            api.begin(session.path)
            api.finish(step.id, OptimStepResult(step=1, metrics={}))
            assert step.result().step == 1

    asyncio.run(cell())


def test_the_blocking_client_is_generated_from_the_other() -> None:
    spec = importlib.util.spec_from_file_location("generate_sync", CLIENT / "generate_sync.py")
    assert spec and spec.loader
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    files = {file.name for file in generator.ASYNC.glob("*.py")}
    assert {file.name for file in generator.SYNC.glob("*.py")} == files
    for name in files:
        stale = f"{name}: run python client/generate_sync.py"
        assert (generator.SYNC / name).read_text() == generator.generated(generator.ASYNC / name), stale
