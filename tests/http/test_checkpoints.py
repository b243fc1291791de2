"""Checkpoints over HTTP: saved by operations, listed, downloaded by signed links, deleted, and gone on from."""

from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import msgspec
import pytest

from app import create_app
from domain.api_key import ANONYMOUS
from domain.checkpoint import Checkpoint, CheckpointKind, NewFile, Part
from settings import Settings
from store.store import Store, open_store
from tests.http.conftest import SESSIONS, WORKER, Api

CHECKPOINTS = "/v1/rl/checkpoints"
TRAINING, INFERENCE = CheckpointKind.TRAINING, CheckpointKind.INFERENCE
ADAPTER = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"AB" * 5000}
PARTS = {
    TRAINING: {Part.STATE: {"state.safetensors": b"moments"}},
    INFERENCE: {Part.ADAPTER: ADAPTER, Part.MERGED: {"model.safetensors": b"W"}},
}


def ask(api: Api, session: str, kind: CheckpointKind, **options: Any) -> str:
    accepted = api.client.post(f"{session}:{kind}-checkpoint", **options)
    assert accepted.status_code == 200, accepted.text
    assert accepted.json["status"] == "TRAINING_OPERATION_STATUS_PENDING"
    return str(accepted.json["operation_id"])


def save(api: Api, session: str, kind: CheckpointKind, step: int = 42) -> str:
    """The id of a checkpoint that the worker has saved."""
    operation_id = ask(api, session, kind)
    claim = api.store.claims.claim(operation_id, WORKER, str(uuid4()))
    assert claim is not None
    parts = {part: [NewFile.of(name, data) for name, data in files.items()] for part, files in PARTS[kind].items()}
    checkpoints = api.store.checkpoints
    checkpoint = checkpoints.write(claim, checkpoints.begin(claim), kind, step, parts)
    assert api.store.claims.finish(claim, checkpoint)
    saved = api.client.get(f"{session}/operations/{kind}-checkpoint/{operation_id}").json
    assert saved["status"] == "TRAINING_OPERATION_STATUS_COMPLETED"
    return str(saved["data"]["checkpoint_id"])


@pytest.fixture
def session(api: Api) -> str:
    session = api.session(lora_config={"rank": 4, "alpha": 24, "dropout": 0.1})
    api.begin(session)
    return session


def download(api: Api, checkpoint_id: str, variant: str) -> Any:
    return api.client.get(f"{CHECKPOINTS}/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_{variant}")


@pytest.mark.parametrize("kind", CheckpointKind)
def test_saving_needs_no_body_and_is_read_under_its_kind_alone(api: Api, session: str, kind: CheckpointKind) -> None:
    operation_id = ask(api, session, kind)
    assert ask(api, session, kind, json={}) != operation_id
    assert api.client.get(f"{session}/operations/{kind}-checkpoint/{operation_id}").json["operation_id"] == operation_id
    other = INFERENCE if kind is TRAINING else TRAINING
    assert api.client.get(f"{session}/operations/{other}-checkpoint/{operation_id}").status_code == 404
    assert api.client.get(f"{session}/operations").json[0]["kind"] == f"{kind}-checkpoint"
    assert api.client.post(f"{session}:{kind}-checkpoint", json={"name": "x"}).status_code == 400


def test_a_retry_with_its_key_saves_once(api: Api, session: str) -> None:
    first, second = (ask(api, session, TRAINING, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first == second
    assert len(api.client.get(f"{session}/operations").json) == 1


def test_a_checkpoint_shows_where_it_comes_from(api: Api, session: str) -> None:
    training, inference = save(api, session, TRAINING), save(api, session, INFERENCE)
    shown = api.client.get(f"{CHECKPOINTS}/{inference}").json
    created_at = shown.pop("created_at")
    assert shown == {
        "id": inference,
        "kind": "CHECKPOINT_KIND_INFERENCE",
        "session_id": session.rpartition("/")[2],
        "base_model": "org/tiny",
        "lora_config": {"rank": 4, "alpha": 24, "dropout": 0.1},
        "step": 42,
        "size": 10_003,
        "registration": {"model_name": f"tiny-rl-step-42-{inference[:8]}", "registered_at": created_at},
    }
    operation = api.client.get(f"{session}/operations/inference-checkpoint/{inference}").json
    assert operation["data"] == {"model_name": f"tiny-rl-step-42-{inference[:8]}", "checkpoint_id": inference}
    shown = api.client.get(f"{CHECKPOINTS}/{training}").json
    assert (shown["kind"], shown["size"], "registration" in shown) == ("CHECKPOINT_KIND_TRAINING", 7, False)
    operation = api.client.get(f"{session}/operations/training-checkpoint/{training}").json
    assert operation["data"] == {"checkpoint_id": training}


def test_lists_are_bare_newest_first_filtered_and_paged(api: Api, session: str) -> None:
    ids = [save(api, session, kind) for kind in (TRAINING, INFERENCE, TRAINING)]

    def listed(query: str = "") -> list[str]:
        return [one["id"] for one in api.client.get(f"{CHECKPOINTS}{query}").json]

    assert listed() == listed("?kind=CHECKPOINT_KIND_UNSPECIFIED") == ids[::-1]
    assert listed("?limit=1&offset=1") == [ids[1]]
    assert listed("?kind=CHECKPOINT_KIND_TRAINING") == [ids[2], ids[0]]
    assert listed(f"?session_id={session.rpartition('/')[2]}&kind=CHECKPOINT_KIND_INFERENCE") == [ids[1]]
    assert listed("?session_id=other") == []
    for query in ("?kind=TRAINING", "?limit=0", "?after=x"):
        assert api.client.get(f"{CHECKPOINTS}{query}").status_code == 400


def test_a_link_gives_the_file_without_a_key_whole_and_in_ranges(
    api: Api, session: str, settings: Settings, store: Store
) -> None:
    checkpoint_id = save(api, session, INFERENCE)
    locked = create_app(msgspec.structs.replace(settings, api_keys=("key",)), store).test_client()
    asked: Any = api.client.get(f"{CHECKPOINTS}/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_ADAPTER")
    files = {file["filename"]: file for file in asked.json["data"]}
    assert {name: file["size"] for name, file in files.items()} == {name: len(data) for name, data in ADAPTER.items()}
    for name, data in ADAPTER.items():
        answer: Any = locked.get(files[name]["url"])
        assert (answer.status_code, answer.data) == (200, data)
        assert int(answer.headers["Content-Length"]) == len(data)
        assert name in answer.headers["Content-Disposition"]
    part: Any = locked.get(files["adapter_model.safetensors"]["url"], headers={"Range": "bytes=9990-"})
    assert (part.status_code, part.data) == (206, b"AB" * 5)
    assert locked.get(f"{CHECKPOINTS}/{checkpoint_id}").status_code == 401


def test_links_of_one_process_are_good_in_another(api: Api, session: str, settings: Settings, store: Store) -> None:
    (file,) = download(api, save(api, session, INFERENCE), "MERGED").json["data"]
    assert create_app(settings, store).test_client().get(file["url"]).data == b"W"


def test_links_begin_as_the_setting_says(api: Api, session: str, settings: Settings, store: Store) -> None:
    checkpoint_id = save(api, session, INFERENCE)
    behind = create_app(msgspec.structs.replace(settings, public_url="https://rl.example/"), store).test_client()
    answer: Any = behind.get(f"{CHECKPOINTS}/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_MERGED")
    assert answer.json["data"][0]["url"].startswith("https://rl.example/files/")


def test_files_that_lie_elsewhere_are_had_from_there(
    api: Api, session: str, settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_id = save(api, session, INFERENCE)
    for name, value in (("REGION", "eu-central-1"), ("ACCESS_KEY_ID", "id"), ("SECRET_ACCESS_KEY", "secret")):
        monkeypatch.setenv(f"AWS_{name}", value)
    remote = msgspec.structs.replace(settings, objects_url="s3://bucket/run", link_seconds=77)
    with closing(open_store(remote)) as elsewhere:
        client: Any = create_app(remote, elsewhere).test_client()
        (file,) = client.get(f"{CHECKPOINTS}/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_MERGED").json["data"]
    url, folder = urlsplit(file["url"]), store.checkpoints.get(checkpoint_id, ANONYMOUS).folder
    assert url.path == f"/bucket/run/{folder}merged/model.safetensors"
    assert parse_qs(url.query)["X-Amz-Expires"] == ["77"]


@pytest.mark.parametrize("change", ["token", "name", "signature"])
def test_a_link_that_was_changed_is_a_403(api: Api, session: str, change: str) -> None:
    files = download(api, save(api, session, INFERENCE), "ADAPTER").json["data"]
    token, name = urlsplit(files[0]["url"]).path.split("/")[2:]
    payload, rest = token.split(".", 1)
    changed = {
        "token": f"{payload[:-2]}AA.{rest}/{name}",
        "name": f"{token}/{files[1]['filename']}",
        "signature": f"{token[:-3]}AAA/{name}",
    }[change]
    answer = api.client.get(f"/files/{changed}")
    assert (answer.status_code, answer.json["code"]) == (403, 403)
    assert api.client.get(f"/files/{token}/{name}").status_code == 200


def test_a_deleted_checkpoint_is_a_404_and_so_are_its_links(api: Api, session: str) -> None:
    checkpoint_id = save(api, session, INFERENCE)
    (file,) = download(api, checkpoint_id, "MERGED").json["data"]
    deleted = api.client.delete(f"{CHECKPOINTS}/{checkpoint_id}")
    assert (deleted.status_code, deleted.data) == (204, b"")
    api.store.janitor.sweep()
    for method, path in (
        ("GET", f"{CHECKPOINTS}/{checkpoint_id}"),
        ("DELETE", f"{CHECKPOINTS}/{checkpoint_id}"),
        ("GET", f"{CHECKPOINTS}/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_MERGED"),
        ("GET", urlsplit(file["url"]).path),
    ):
        assert api.client.open(path, method=method).status_code == 404


def test_what_cannot_be_downloaded_is_a_400(api: Api, session: str) -> None:
    training, inference = save(api, session, TRAINING), save(api, session, INFERENCE)
    for path, field in (
        (f"{training}/download?variant=CHECKPOINT_VARIANT_ADAPTER", "variant"),
        (f"{training}/download?variant=CHECKPOINT_VARIANT_MERGED", "variant"),
        (f"{inference}/download?variant=CHECKPOINT_VARIANT_UNSPECIFIED", "variant"),
        (f"{inference}/download?variant=merged", "variant"),
        (f"{inference}/download", "variant"),
    ):
        answer = api.client.get(f"{CHECKPOINTS}/{path}")
        assert (answer.status_code, answer.json["errors"][0]["field"]) == (400, field)


def test_a_session_that_goes_on_takes_the_checkpoint_s_config_and_step(api: Api, session: str) -> None:
    checkpoint_id = save(api, session, TRAINING)
    created = api.create(checkpoint_id=checkpoint_id)
    assert created.status_code == 200
    assert created.json["lora_config"] == {"rank": 4, "alpha": 24, "dropout": 0.1}
    assert (created.json["step"], created.json["checkpoint_id"]) == (42, checkpoint_id)
    partly = api.create(checkpoint_id=checkpoint_id, lora_config={"dropout": 0}).json
    assert partly["lora_config"] == {"rank": 4, "alpha": 24, "dropout": 0.0}
    assert api.create(checkpoint_id=None).json["lora_config"]["rank"] == 8


def test_what_a_session_cannot_go_on_from_is_a_400_before_there_is_one(api: Api, session: str) -> None:
    training, inference, deleted = (save(api, session, kind) for kind in (TRAINING, INFERENCE, TRAINING))
    api.client.delete(f"{CHECKPOINTS}/{deleted}")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"checkpoint_id": inference}, "checkpoint_id"),
        ({"checkpoint_id": "unknown"}, "checkpoint_id"),
        ({"checkpoint_id": ""}, "checkpoint_id"),
        ({"checkpoint_id": deleted}, "checkpoint_id"),
        ({"checkpoint_id": training, "base_model": "bare"}, "checkpoint_id"),
        ({"checkpoint_id": training, "lora_config": {"rank": 8}}, "lora_config.rank"),
    ]
    for body, field in refused:
        answer = api.create(**body)
        assert (answer.status_code, answer.json["errors"][0]["field"]) == (400, field), body
    assert len(api.client.get(SESSIONS).json) == 1


def test_a_checkpoint_deleted_between_the_look_and_the_creation_is_a_400(
    api: Api, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_id = save(api, session, TRAINING)
    found = api.store.checkpoints.get(checkpoint_id, ANONYMOUS)
    api.client.delete(f"{CHECKPOINTS}/{checkpoint_id}")

    def as_it_was(*_: str) -> Checkpoint:
        return found

    monkeypatch.setattr(api.store.checkpoints, "get", as_it_was)
    assert api.create(checkpoint_id=checkpoint_id).status_code == 400
