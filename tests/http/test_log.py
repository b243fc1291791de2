"""Numbers that a user attaches to the steps of a session."""

from typing import Any

import pytest

from tests.http.conftest import SESSIONS, Api


def log(api: Api, session: str, **body: Any) -> Any:
    return api.client.post(f"{session}:log", json=body)


def points(api: Api, session: str) -> list[tuple[int, dict[str, float]]]:
    found = api.store.metric_series.logged(session.rpartition("/")[2], "", 100)
    return [(point.step, point.values) for point in found]


def test_a_value_is_kept_under_its_name_and_step(api: Api) -> None:
    session = api.session()
    answer = log(api, session, name="reward", step="3", value=0.5)
    assert (answer.status_code, answer.json) == (200, {"name": "reward", "step": 3, "value": 0.5})
    log(api, session, name="reward", step=3, value=1)
    assert points(api, session) == [(3, {"reward": 0.5}), (3, {"reward": 1.0})]


def test_a_repeat_under_its_key_logs_once(api: Api) -> None:
    session, body = api.session(), {"name": "reward", "step": 1, "value": 1.0}
    answers = [api.client.post(f"{session}:log", json=body, headers={"Idempotency-Key": "key"}).json for _ in range(2)]
    assert answers[0] == answers[1] == body
    assert len(points(api, session)) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 65),
        ("name", "two\nlines"),
        ("name", 7),
        ("step", -1),
        ("step", 2**31),
        ("step", 1.0),
        ("value", "1"),
        ("value", 1e39),
        ("value", None),
        ("colour", "red"),
    ],
)
def test_what_is_no_name_step_or_number_is_refused_by_name(api: Api, field: str, value: Any) -> None:
    session = api.session()
    answer = log(api, session, **{"name": "reward", "step": 1, "value": 1.0, field: value})
    assert (answer.status_code, answer.json["code"]) == (400, 400)
    assert field in answer.json["message"]
    assert points(api, session) == []


def test_names_are_bounded_and_the_refusal_says_so(api: Api) -> None:
    session = api.session()
    answers = [log(api, session, name=f"name {number}", step=0, value=0.0) for number in range(33)]
    assert [answer.status_code for answer in answers] == [200] * 32 + [400]
    assert "at most 32 names" in answers[-1].json["message"]


def test_an_unknown_session_is_a_404(api: Api) -> None:
    assert log(api, f"{SESSIONS}/nothing", name="reward", step=0, value=0.0).status_code == 404
