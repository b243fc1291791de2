"""Creating, reading, listing and stopping sessions."""

from msgspec.structs import replace

from store.workers import needed
from tests.http.conftest import SESSIONS, WORKER, Api, announcement


def test_a_session_is_created_with_the_defaults_echoed(api: Api) -> None:
    response = api.create()
    assert response.status_code == 200
    session = response.json
    assert session.pop("session_id")
    assert session.pop("created_at") == session.pop("updated_at")
    assert session == {
        "status": "TRAINING_SESSION_STATUS_CREATING",
        "base_model": "org/tiny",
        "step": 0,
        "lora_config": {"rank": 8, "alpha": 16, "dropout": 0.05},
    }


def test_a_created_session_reads_back_the_same(api: Api) -> None:
    created = api.create(lora_config={"rank": "4", "dropout": 0}).json
    assert created["lora_config"] == {"rank": 4, "alpha": 16, "dropout": 0.0}
    assert api.client.get(f"{SESSIONS}/{created['session_id']}").json == created


def test_a_running_session_says_so(api: Api) -> None:
    session = api.session()
    api.begin(session)
    assert api.client.get(session).json["status"] == "TRAINING_SESSION_STATUS_RUNNING"


def test_a_model_that_every_worker_refuses_is_a_400_with_the_reason_and_not_sought_on_the_hub(api: Api) -> None:
    refused = {"mine": "model.safetensors is a Git LFS pointer", "org/tiny": "of another worker: its files are old"}
    api.store.workers.beat("worker-2", replace(announcement(), models=(), refused=refused))
    response = api.client.post(SESSIONS, json={"base_model": "mine"})
    assert response.status_code == 400
    assert response.json["errors"] == [
        {"field": "base_model", "message": "'mine' is refused: model.safetensors is a Git LFS pointer"}
    ]
    assert api.create().status_code == 200, "another worker serves it"


def test_workers_without_a_model_are_there_all_the_same(api: Api) -> None:
    api.store.workers.beat(WORKER, replace(announcement(), models=(), refused={"org/tiny": "its config.json is cut"}))
    assert api.create().json["errors"][0]["message"] == "'org/tiny' is refused: its config.json is cut"
    assert "not served here" in api.client.post(SESSIONS, json={"base_model": "no/such"}).json["errors"][0]["message"]


def test_an_unknown_base_model_or_checkpoint_is_a_400_and_no_session(api: Api) -> None:
    for body in ({"base_model": "no such model!"}, {"base_model": "org/tiny", "checkpoint_id": "c"}):
        response = api.client.post(SESSIONS, json=body)
        assert response.status_code == 400
        assert response.json["errors"][0]["field"] == list(body)[-1]
    assert api.client.get(SESSIONS).json == []


def test_without_a_live_worker_creation_is_to_be_retried(api: Api) -> None:
    api.redis.flushall()
    response = api.create()
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1


def test_a_worker_that_is_away_still_tells_which_base_models_there_are(api: Api) -> None:
    api.redis.zadd("celerity:workers", {WORKER: 1.0})
    assert api.create().status_code == 503
    assert api.create(base_model="no such model!").status_code == 400


def test_a_repeat_under_its_key_finds_its_session_though_every_worker_is_full_by_then(api: Api) -> None:
    api.store.workers.beat(WORKER, announcement(capacity=1))
    key = {"Idempotency-Key": "first"}
    body = {"base_model": "org/tiny"}
    first = api.client.post(SESSIONS, json=body, headers=key)
    # As if the process had died before it could keep its answer.
    (kept,) = api.redis.keys("celerity:idempotency:*")
    api.redis.hdel(kept, "answer")
    assert api.client.post(SESSIONS, json=body, headers=key).json["session_id"] == first.json["session_id"]
    assert api.create().status_code == 429


def test_a_list_is_bare_newest_first_and_paged(api: Api) -> None:
    ids = [api.create().json["session_id"] for _ in range(5)]
    listed = [session["session_id"] for session in api.client.get(SESSIONS).json]
    assert listed == ids[::-1]
    assert [s["session_id"] for s in api.client.get(f"{SESSIONS}?limit=2&offset=1").json] == ids[3:1:-1]
    assert api.client.get(f"{SESSIONS}?offset=5").json == []


def test_a_list_may_be_of_one_status(api: Api) -> None:
    running, creating = api.session(), api.session()
    api.begin(running)
    for status, session in (("RUNNING", running), ("CREATING", creating)):
        (found,) = api.client.get(f"{SESSIONS}?status=TRAINING_SESSION_STATUS_{status}").json
        assert session.endswith(found["session_id"])
    assert len(api.client.get(f"{SESSIONS}?status=TRAINING_SESSION_STATUS_UNSPECIFIED").json) == 2
    assert api.client.get(f"{SESSIONS}?status=TRAINING_SESSION_STATUS_ERROR").json == []


def test_stopping_is_idempotent_with_or_without_a_body(api: Api) -> None:
    session = api.session()
    first, second = api.client.post(f"{session}:stop"), api.client.post(f"{session}:stop", json={})
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json["status"] in ("TRAINING_SESSION_STATUS_STOPPING", "TRAINING_SESSION_STATUS_STOPPED")
    assert second.json["session_id"] == first.json["session_id"]
    assert api.client.post(f"{session}:stop", json={"now": True}).status_code == 400
    assert api.client.post(f"{session}:stop", data="now", content_type="text/plain").status_code == 415


def test_a_stopped_session_takes_no_operations_and_fails_what_waited(api: Api) -> None:
    session = api.session()
    waiting = api.sample(session)
    api.client.post(f"{session}:stop")
    refused = api.client.post(f"{session}:optim-step", json={})
    assert refused.status_code == 400
    operation = api.client.get(f"{session}/operations/sample/{waiting}").json
    assert operation["status"] == "TRAINING_OPERATION_STATUS_FAILED"
    assert operation["error"]["code"] == "TRAINING_OPERATION_ERROR_CODE_SESSION_NOT_ACTIVE"


def test_the_models_of_live_workers_are_listed(api: Api) -> None:
    assert api.client.get("/v1/models").json == [
        {"id": "bare", "vocab_size": 16, "context_length": 8},
        {"id": "org/tiny", "vocab_size": 64, "context_length": 32},
    ]


def test_when_every_worker_is_full_a_new_session_is_to_be_tried_again(api: Api) -> None:
    api.store.workers.beat(WORKER, announcement(capacity=0))
    response = api.create()
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) >= 1
    assert "full" in response.json["message"]


def test_a_rank_that_no_worker_could_ever_hold_is_refused_for_good_with_the_sizes(api: Api) -> None:
    most = needed(16 * 1000 * 100)
    larger = replace(announcement(free_bytes=0), total_bytes=most + 7, reserved_bytes=7)
    api.store.workers.beat(WORKER, larger)
    api.store.workers.beat("smaller", replace(larger, total_bytes=most))
    refused = api.create(lora_config={"rank": 101})
    assert (refused.status_code, refused.json["errors"][0]["field"]) == (400, "lora_config.rank")
    assert f"{needed(16 * 1000 * 101)} bytes" in refused.text and f"has {most} " in refused.text
    resources = api.client.post("/together/v1/rl/model-resources", json={"base_model": "org/tiny"}).json["id"]
    asked = {"model_resources_id": resources, "lora_config": {"rank": 101}}
    assert api.client.post("/together/v1/rl/training-sessions", json=asked).status_code == 400
    assert api.create(lora_config={"rank": 100}).status_code == 429, "there may be room later"


def test_a_rank_that_no_worker_has_memory_for_is_to_be_tried_again_and_a_smaller_one_is_not(api: Api) -> None:
    api.store.workers.beat(WORKER, announcement(free_bytes=needed(16 * 1000 * 100)))
    refused = api.create(lora_config={"rank": 101})
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert api.create(lora_config={"rank": 100}).status_code == 200
    assert api.create(lora_config={"rank": 100}).status_code == 429, "the first one is still to be created"
