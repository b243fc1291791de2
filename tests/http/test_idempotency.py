"""Idempotency-Key: one effect, one answer, for as many repeats as come."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from app import create_app
from store.store import open_store
from tests.http.conftest import SESSIONS, Api

KEY = {"Idempotency-Key": "k-1"}


def test_a_repeat_gets_the_first_answer_and_does_nothing(api: Api) -> None:
    session = api.session()
    first = api.client.post(f"{session}:optim-step", json={}, headers=KEY)
    api.begin(session)
    repeats = [api.client.post(f"{session}:optim-step", json={}, headers=KEY) for _ in range(3)]
    assert {response.data for response in repeats} == {first.data}
    assert len(api.client.get(f"{session}/operations").json) == 1


def test_ten_at_once_make_one_operation(app: Flask, api: Api) -> None:
    session = api.session()

    def post(_: int) -> bytes:
        response = app.test_client().post(f"{session}:optim-step", json={}, headers=KEY)
        assert response.status_code == 200
        return response.data

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(post, range(10)))) == 1
    assert len(api.client.get(f"{session}/operations").json) == 1


def test_ten_at_once_make_one_session(app: Flask, api: Api) -> None:
    def post(_: int) -> bytes:
        return app.test_client().post(SESSIONS, json={"base_model": "org/tiny"}, headers=KEY).data

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(post, range(10)))) == 1
    assert len(api.client.get(SESSIONS).json) == 1


def test_an_unseeded_sample_repeats_as_the_first_one(api: Api) -> None:
    session = api.session()
    assert api.sample(session, **KEY) == api.sample(session, **KEY)


def test_the_same_key_with_another_body_is_refused(api: Api) -> None:
    session = api.session()
    api.client.post(f"{session}:optim-step", json={}, headers=KEY)
    response = api.client.post(f"{session}:optim-step", json={"learning_rate": 1e-3}, headers=KEY)
    assert (response.status_code, response.json["code"]) == (422, 422)


def test_a_key_counts_for_one_path(api: Api) -> None:
    session, other = api.session(), api.session()
    ids = {
        api.client.post(f"{path}:optim-step", json={}, headers=KEY).json["operation_id"] for path in (session, other)
    }
    assert len(ids) == 2
    assert api.client.post(f"{session}:stop", json={}, headers=KEY).status_code == 200


def test_a_key_whose_request_was_refused_may_be_sent_again(api: Api) -> None:
    session = api.session()
    assert api.client.post(f"{session}:optim-step", json={"learning_rate": -1}, headers=KEY).status_code == 400
    assert api.client.post(f"{session}:optim-step", json={}, headers=KEY).status_code == 200


def test_a_key_outlives_the_process(app: Flask, api: Api) -> None:
    session = api.session()
    first = api.client.post(f"{session}:optim-step", json={}, headers=KEY)
    settings = app.extensions["celerity"].settings
    store = open_store(settings)
    again = create_app(settings, store).test_client().post(f"{session}:optim-step", json={}, headers=KEY)
    store.close()
    assert again.data == first.data


def test_cancel_and_stop_repeat_under_a_key(api: Api) -> None:
    session = api.session()
    operation_id = api.sample(session)
    for path in (f"{session}/operations/{operation_id}:cancel", f"{session}:stop"):
        answers = [api.client.post(path, headers=KEY) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert len({answer.data for answer in answers}) == 1


def test_without_a_key_every_post_counts(api: Api) -> None:
    session = api.session()
    assert api.sample(session) != api.sample(session)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_a_key_that_cannot_be_one_is_refused(api: Api, key: str) -> None:
    response = api.client.post(SESSIONS, json={"base_model": "org/tiny"}, headers={"Idempotency-Key": key})
    assert (response.status_code, response.json["errors"][0]["field"]) == (400, "Idempotency-Key")
