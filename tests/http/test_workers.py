"""The operators' view of the workers."""

from tests.http.conftest import WORKER, Api, announcement


def test_it_shows_what_each_worker_said_of_itself_and_holds(api: Api) -> None:
    session_id = api.session().rpartition("/")[2]
    (worker,) = api.client.get("/v1/workers").json
    assert 0 <= worker.pop("heartbeat_age") < 60
    assert worker == {
        "worker_id": WORKER,
        "device": "cpu",
        "base_models": ["org/tiny", "bare"],
        "capacity": 100,
        "session_count": 1,
        "resident_count": 0,
        "resident_bytes": 0,
        "free_bytes": 1 << 30,
        "sessions": [{"session_id": session_id, "epoch": 1}],
    }


def test_a_session_that_moves_is_shown_where_it_is_with_its_new_epoch(api: Api) -> None:
    session_id = api.session().rpartition("/")[2]
    api.store.workers.beat("worker-2", announcement())
    assert api.store.sessions.move(session_id, WORKER, "worker-2")
    held = {worker["worker_id"]: worker["sessions"] for worker in api.client.get("/v1/workers").json}
    assert held == {WORKER: [], "worker-2": [{"session_id": session_id, "epoch": 2}]}


def test_one_whose_heartbeat_is_missed_is_shown_with_its_age_until_it_is_forgotten(api: Api) -> None:
    (now, _) = api.redis.time()
    api.redis.zadd("celerity:workers", {WORKER: now - 100})
    (worker,) = api.client.get("/v1/workers").json
    assert 99 <= worker["heartbeat_age"] < 160
    assert api.client.get("/v1/models").json == [], "it serves nothing any more"
    api.store.workers.leave(WORKER)
    assert api.client.get("/v1/workers").json == []
