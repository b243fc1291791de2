"""`celerity` as it is typed, against a server behind a real socket."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from cli.doctor import doctor
from cli.program import celerity
from domain.checkpoint import CheckpointKind, NewFile, Part
from domain.redis_url import read_redis_url
from settings import load_settings
from store.dispatch import producer
from testing.tiny_model import TOKENIZER_SIZE, make_tiny_model, reconfigured
from tests.http.conftest import WORKER, Api

Run = Callable[..., Result]


@pytest.fixture
def run(url: str) -> Run:
    def run(*arguments: str, **environment: str) -> Result:
        return CliRunner().invoke(celerity, arguments, env={"CELERITY_CLIENT_URL": url, **environment})

    return run


def said(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_every_command_explains_itself() -> None:
    def walk(command: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        inner = getattr(command, "commands", {})
        return [path, *(found for name, each in inner.items() for found in walk(each, (*path, name)))]

    paths = walk(celerity, ())
    assert {path[0] for path in paths if path} == {
        "up", "run", "worker", "api", "keys", "sessions", "ops", "checkpoints", "models", "top", "doctor",
    }  # fmt: skip
    for path in paths:
        result = CliRunner().invoke(celerity, [*path, "--help"])
        assert result.exit_code == 0 and result.output.count("\n") > 4, path


def test_sessions_are_listed_shown_and_stopped(run: Run, api: Api) -> None:
    session_id = api.session().rpartition("/")[2]
    assert [each["session_id"] for each in said(run("sessions", "list", "--json"))] == [session_id]
    assert said(run("sessions", "show", session_id, "--json"))["base_model"] == "org/tiny"
    head, line = run("sessions", "list").output.splitlines()
    assert head.split()[:2] == ["session_id", "status"] and line.split()[0] == session_id
    assert said(run("sessions", "stop", session_id, "--json"))["status"] == "TRAINING_SESSION_STATUS_STOPPING"


def test_operations_are_listed_and_cancelled(run: Run, api: Api) -> None:
    session = api.session()
    operation_id, session_id = api.sample(session), session.rpartition("/")[2]
    assert [each["operation_id"] for each in said(run("ops", "list", session_id, "--json"))] == [operation_id]
    assert said(run("ops", "cancel", session_id, operation_id, "--json"))["status"].endswith("FAILED")


def test_checkpoints_are_listed_downloaded_and_deleted(run: Run, api: Api, tmp_path: Path) -> None:
    session = api.session()
    api.begin(session)
    operation_id = api.client.post(f"{session}:inference-checkpoint").json["operation_id"]
    claim = api.store.claims.claim(operation_id, WORKER, str(uuid4()))
    assert claim
    folder, files = api.store.checkpoints.begin(claim), {Part.ADAPTER: [NewFile.of("adapter.bin", b"weights")]}
    made = api.store.checkpoints.write(claim, folder, CheckpointKind.INFERENCE, 1, files)
    assert api.store.claims.finish(claim, made)
    assert [each["id"] for each in said(run("checkpoints", "list", "--json"))] == [operation_id]
    paths = said(run("checkpoints", "download", operation_id, str(tmp_path / "here"), "--json"))
    assert [Path(path).read_bytes() for path in paths] == [b"weights"]
    assert said(run("checkpoints", "delete", operation_id, "--yes", "--json")) == {"deleted": operation_id}
    assert said(run("checkpoints", "list", "--json")) == []


def test_models_are_listed_and_a_folder_is_added_once(run: Run, tmp_path: Path) -> None:
    assert [model["id"] for model in said(run("models", "list", "--json"))] == ["bare", "org/tiny"]
    source, models = make_tiny_model(tmp_path / "mine"), tmp_path / "models"
    models.mkdir()
    (source / ".git").mkdir()
    (source / "more").symlink_to(tmp_path)
    added = said(run("models", "add", str(source), "--json", CELERITY_MODELS_DIR=str(models)))
    assert Path(added["directory"]) == models / "mine"
    copied = {file.name for file in (models / "mine").iterdir()}
    assert copied == {file.name for file in source.iterdir() if file.is_file()}, "and nothing that nobody reads"
    for arguments in (["add", str(source)], ["add", str(source), "--name", "../out"]):
        refused = run("models", *arguments, CELERITY_MODELS_DIR=str(models))
        assert refused.exit_code == 1 and "another --name" in refused.output
    (source / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1")
    broken = run("models", "add", str(source), "--name", "again", CELERITY_MODELS_DIR=str(models))
    assert broken.exit_code == 1 and "git lfs pull" in broken.output and not (models / "again").exists()


def test_a_check_tells_what_a_model_needs_or_why_it_is_refused(run: Run, tmp_path: Path) -> None:
    good = make_tiny_model(tmp_path / "models" / "good")
    lacking = reconfigured(make_tiny_model(tmp_path / "models" / "lacking"), num_hidden_layers=3)
    (make_tiny_model(tmp_path / "models" / "wordless") / "tokenizer.json").write_text("{}")
    (make_tiny_model(tmp_path / "models" / "pointer") / "config.json").write_text(
        "version https://git-lfs.github.com/spec/"
    )
    here = {"CELERITY_MODELS_DIR": str(tmp_path / "models"), "CELERITY_DEVICE": "cpu"}

    def checked(*source: str) -> tuple[int, Any]:
        result = run("models", "check", *source, "--json", **here)
        return result.exit_code, json.loads(result.stdout)

    code, found = checked("good")
    assert (code, found["served"], found["vocab_size"], found["tokenizer"]) == (0, True, TOKENIZER_SIZE, "ok")
    assert "self_attn.q_proj" in found["adapted_modules"] and found["unadapted_modules"] == []
    assert run("models", "check", "good", **here).stdout.count("unadapted_modules  none") == 1
    assert checked(str(good)) == (0, found)
    code, found = checked(str(lacking))
    assert (code, found["served"]) == (1, False) and "model.layers.2." in found["reason"]
    code, found = checked(str(tmp_path / "models"))
    assert code == 1
    assert [(each["name"], each["served"]) for each in found] == [
        ("good", True), ("lacking", False), ("pointer", False), ("wordless", True),
    ]  # fmt: skip
    assert "git lfs pull" in found[2]["reason"] and "tokenizer cannot be loaded" in found[3]["tokenizer"]
    unknown = run("models", "check", "no/such", **here)
    assert unknown.exit_code == 1 and "not served here" in unknown.output


def test_top_shows_sessions_and_workers(run: Run, api: Api) -> None:
    session_id = api.session().rpartition("/")[2]
    seen = said(run("top", "--once", "--json"))
    assert (seen["sessions"][0]["session_id"], seen["workers"][0]["worker_id"]) == (session_id, WORKER)
    assert session_id in run("top", "--once").output


def test_a_refusal_and_an_absent_server_are_a_sentence_and_a_1(run: Run) -> None:
    unknown = run("sessions", "show", "unknown")
    assert (unknown.exit_code, unknown.output) == (1, "Error: 404: no such training session\n")


def test_the_doctor_says_what_is_there_and_what_to_do(redis_url: str, tmp_path: Path, api: Api) -> None:
    environment = {"CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(tmp_path), "CELERITY_DEVICE": "cpu"}
    environment["CELERITY_HEARTBEAT_TIMEOUT"] = "60"

    def findings(**more: str) -> dict[str, Any]:
        result = CliRunner().invoke(doctor, ["--json"], env={**environment, **more})
        found = {each["what"]: each for each in json.loads(result.output)}
        assert result.exit_code == int(any(each["advice"] for each in found.values()))
        return found

    there = findings()
    assert there["Redis"]["found"] == "reached" and there["device"]["found"].startswith("cpu, torch")
    assert there["Redis memory"] == {"what": "Redis memory", "found": "noeviction", "advice": ""}
    assert there["broker"]["found"] == "reached"
    assert there["workers"]["found"].startswith("1 announced")
    assert there["disk"]["advice"] == "" and "objects" not in there
    assert findings(CELERITY_OBJECTS_URL=f"file://{tmp_path}")["objects"]["advice"] == ""
    assert "folder" in findings(CELERITY_OBJECTS_URL="file:///no/such/folder")["objects"]["advice"]
    api.redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert "noeviction" in findings()["Redis memory"]["advice"]
    finally:
        api.redis.config_set("maxmemory-policy", "noeviction")
    missing = findings(CELERITY_REDIS_URL="rediss://127.0.0.1:1/0?ssl_ca_certs=/no/such.pem")["Redis"]
    assert "/no/such.pem" in missing["found"] and missing["advice"] == "correct CELERITY_REDIS_URL"
    away = findings(CELERITY_REDIS_URL="redis://127.0.0.1:1/0", CELERITY_MODELS_DIR=str(tmp_path / "none"))
    assert away["Redis"]["advice"] and "CELERITY_MODELS_DIR" in away["models"]["advice"]


@pytest.mark.parametrize("made", ["file", "read-only"])
def test_the_doctor_tells_of_an_objects_folder_that_cannot_be_written(
    made: str, redis_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "objects"
    if made == "file":
        folder.write_text("in its place")
    else:
        # Nobody makes files there, not even root, which tests may run as.
        folder.symlink_to("/proc")
    environment = {"CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(tmp_path), "CELERITY_DEVICE": "cpu"}
    result = CliRunner().invoke(doctor, [], env=environment)
    assert result.exit_code == 1 and "ok  Redis: reached" in result.output
    (line,) = [line for line in result.output.splitlines() if line.startswith("BAD objects: ")]
    assert "cannot be" in line and "name another folder in DATA_DIR" in result.output


@pytest.mark.parametrize("command", ["worker", "api"])
def test_a_service_with_a_wrong_setting_is_refused_with_a_sentence(command: str) -> None:
    refused = CliRunner().invoke(celerity, [command], env={"CELERITY_HORIZONT": "1"})
    assert refused.exit_code == 1
    assert refused.output == "Error: CELERITY_HORIZONT is not a setting of Celerity; did you mean CELERITY_HORIZON?\n"


def test_the_names_that_clients_read_do_not_stop_a_server() -> None:
    load_settings({"CELERITY_CLIENT_URL": "http://elsewhere", "CELERITY_CLIENT_KEY": "key"})
    with pytest.raises(ValueError, match="CELERITY_API_KEY is not a setting"):
        load_settings({"CELERITY_API_KEY": "key"})


def test_the_doctor_tells_of_a_broker_that_is_away_though_redis_is_there(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = read_redis_url("redis://127.0.0.1:1/0")
    monkeypatch.setattr("store.store.producer", lambda _, real=producer: real(away))
    environment = {"CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(tmp_path), "CELERITY_DEVICE": "cpu"}
    result = CliRunner().invoke(doctor, ["--json"], env=environment)
    found = {each["what"]: each for each in json.loads(result.output)}
    assert result.exit_code == 1 and found["Redis"]["advice"] == ""
    assert "not reached" in found["broker"]["found"] and "CELERITY_REDIS_URL" in found["broker"]["advice"]
