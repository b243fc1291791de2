"""Object storage is away: what needs it is told to come again, and gets what it wanted when it is back."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import numpy as np
import pytest

from app import create_app
from app.cached_check import CachedCheck
from celerity_client import Client
from domain.checkpoint import CheckpointKind
from domain.operation import OperationKind
from domain.sample import SampleResult, Sequence, StopReason
from settings import Settings
from store.errors import ObjectsAwayError
from store.store import open_store
from tests.http.conftest import CARD, Api
from tests.http.test_checkpoints import download, save

TOGETHER = "/together/v1/rl"
TOKENS = {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Every payload is an object."""
    return msgspec.structs.replace(settings, inline_bytes=0)


class Disk:
    """The folder of the objects, which may be away."""

    def __init__(self, settings: Settings) -> None:
        self._folder, self._elsewhere = settings.data_dir / "objects", settings.data_dir / "elsewhere"

    def go(self) -> None:
        self._folder.rename(self._elsewhere)

    def come_back(self) -> None:
        self._elsewhere.rename(self._folder)

    @contextmanager
    def away(self) -> Iterator[None]:
        self.go()
        yield
        self.come_back()


@pytest.fixture
def disk(settings: Settings, api: Api) -> Disk:
    assert api, "its store has made the folder"
    return Disk(settings)


def check_to_be_retried(answer: Any) -> None:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    assert "object storage" in answer.json["message"]
    assert "/" not in answer.json["message"], "no path of the server's"


def test_what_cannot_be_kept_is_not_accepted_and_may_be_sent_again_under_its_key(api: Api, disk: Disk) -> None:
    session = api.session()
    body, once = {"prompt": TOKENS, "sampling_params": {"max_tokens": 2}}, {"Idempotency-Key": "k"}
    with disk.away():
        check_to_be_retried(api.client.post(f"{session}:sample", json=body, headers=once))
        assert api.client.get(f"{session}/operations").json == []
    accepted = api.client.post(f"{session}:sample", json=body, headers=once)
    assert accepted.status_code == 200
    assert len(api.client.get(f"{session}/operations").json) == 1


def result() -> SampleResult:
    return SampleResult((Sequence(np.array([3], np.int32), np.array([-1.0], np.float32), StopReason.LENGTH),))


def test_a_result_is_there_when_its_storage_is(api: Api, disk: Disk) -> None:
    session = api.session()
    api.begin(session)
    operation_id = api.sample(session)
    api.finish(operation_id, result())
    with disk.away():
        check_to_be_retried(api.client.get(f"{session}/operations/sample/{operation_id}"))
        assert api.client.get(f"{session}/operations").status_code == 200
    ended = api.client.get(f"{session}/operations/sample/{operation_id}").json
    assert ended["data"]["sequences"][0]["tokens"] == [3]


def test_the_console_says_so_on_its_page(api: Api, disk: Disk) -> None:
    session = api.session()
    api.begin(session)
    operation_id = api.sample(session)
    with disk.away():
        page = api.client.get(f"/console/sessions/{session.rpartition('/')[2]}/operations/{operation_id}")
    assert page.status_code == 503
    assert "object storage" in page.text


def test_the_files_of_a_checkpoint_are_away_and_not_unknown(api: Api, disk: Disk) -> None:
    session = api.session()
    api.begin(session)
    saved = save(api, session, CheckpointKind.INFERENCE)
    (file,) = download(api, saved, "MERGED").json["data"]
    with disk.away():
        check_to_be_retried(download(api, saved, "MERGED"))
        check_to_be_retried(api.client.get(file["url"]))
    assert api.client.get(file["url"]).data == b"W"


def test_large_payloads_of_togethers_api_may_be_sent_and_fetched_again(api: Api, disk: Disk) -> None:
    post = api.client.post
    resources = post(f"{TOGETHER}/model-resources", json={"base_model": CARD.name}).json["id"]
    made = post(f"{TOGETHER}/training-sessions", json={"model_resources_id": resources}).json["id"]
    session = f"{TOGETHER}/training-sessions/{made}"
    api.begin(session)
    upload = post(f"{session}/payloads/upload-url").json
    asked = {"payload_id": upload["payload_id"]}
    with disk.away():
        check_to_be_retried(api.client.put(upload["upload_url"], data=b"{}"))
    assert api.client.put(upload["upload_url"], json={"model_inputs": [TOKENS]}).status_code == 200
    with disk.away():
        check_to_be_retried(post(f"{session}/operations/sample", json=asked))
    operation_id = post(f"{session}/operations/sample", json=asked).json["id"]
    api.finish(operation_id, result())
    with disk.away():
        check_to_be_retried(api.client.get(f"{session}/operations/sample/{operation_id}"))
        check_to_be_retried(post(f"{session}/payloads/{operation_id}/download-url"))
    ended = api.client.get(f"{session}/operations/sample/{operation_id}").json
    assert ended["output"]["payload_id"] == operation_id


def test_what_clients_send_leaves_the_floor_of_the_disk_free(api: Api, settings: Settings) -> None:
    """Redis writes to the same disk, for everyone; what is small, and what has been accepted, may use it."""
    session = api.session()
    api.begin(session)
    accepted = api.sample(session)
    resources = api.client.post(f"{TOGETHER}/model-resources", json={"base_model": CARD.name}).json["id"]
    made = api.client.post(f"{TOGETHER}/training-sessions", json={"model_resources_id": resources}).json["id"]
    low = msgspec.structs.replace(settings, disk_floor_bytes=1 << 60)
    with closing(open_store(low)) as store:
        client: Any = create_app(low, store).test_client()
        upload = client.post(f"{TOGETHER}/training-sessions/{made}/payloads/upload-url").json["upload_url"]
        for refused in (
            client.put(upload, data=b"{}"),
            client.post(f"{session}:sample", json={"prompt": TOKENS, "sampling_params": {"max_tokens": 2}}),
        ):
            assert refused.status_code == 503
            assert "disk has no room for a large request" in refused.json["message"]
            assert int(refused.headers["Retry-After"]) >= 1
        Api(client, store, api.redis).finish(accepted, result())
        assert client.get(f"{session}/operations/sample/{accepted}").json["data"]["sequences"]
        assert client.get(f"{session}/operations").status_code == 200
    with closing(open_store(msgspec.structs.replace(low, inline_bytes=1000))) as store:
        assert Api(create_app(low, store).test_client(), store, api.redis).sample(session)


def test_the_client_comes_again(url: str, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    put, left = api.store.operations._context.payloads.put, [1, 1]

    def away_at_first(*arguments: Any) -> bytes:
        if left:
            left.pop()
            raise ObjectsAwayError
        return put(*arguments)

    monkeypatch.setattr(api.store.operations._context.payloads, "put", away_at_first)
    monkeypatch.setattr("app.errors.RETRY_AFTER_SECONDS", 0)
    with Client(url, retry_seconds=60) as client:
        session = client.create_session(CARD.name)
        operation = session.optim_step()
    assert left == []
    assert [each["operation_id"] for each in api.client.get(f"{session.path}/operations").json] == [operation.id]
    assert api.client.get(operation.path).json["status"].endswith("PENDING")
    assert OperationKind.OPTIM_STEP in operation.path


def test_readiness_says_so(api: Api, settings: Settings, disk: Disk) -> None:
    def readiness() -> Any:
        """Of a process that has not looked yet."""
        return create_app(settings, api.store).test_client().get("/readyz")

    assert readiness().status_code == 200
    with disk.away():
        check_to_be_retried(readiness())
        assert api.client.get("/healthz").status_code == 200
    assert readiness().status_code == 200
    assert list((settings.data_dir / "objects").iterdir()) == [], "it leaves nothing"


def test_storage_is_looked_at_every_few_seconds_and_by_one_at_a_time() -> None:
    now, looks, is_away = [0.0], list[bool](), [False]

    def check() -> None:
        looks.append(recent.is_good())
        if is_away[0]:
            raise ObjectsAwayError

    recent = CachedCheck(check, 5.0, lambda: now[0])
    assert [recent.is_good() for _ in range(3)] == [True] * 3
    is_away[0], now[0] = True, 4.9
    assert recent.is_good() and len(looks) == 1
    now[0] = 5.0
    assert not recent.is_good() and len(looks) == 2
    is_away[0], now[0] = False, 10.0
    assert recent.is_good()
    assert looks == [True, True, False], "who asks while another looks hears the last word"
