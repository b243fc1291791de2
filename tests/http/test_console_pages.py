"""What the pages show of real operations, and what they do with strings that mean harm."""

import html
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from msgspec.structs import replace

from app import create_app
from domain.checkpoint import CheckpointKind, NewFile, Part
from domain.forward_backward import ForwardBackwardResult
from domain.metrics import OperationMetrics
from domain.operation import ErrorCode, OperationError
from domain.sample import SampleResult, Sequence, StopReason
from domain.session import Labels
from settings import Settings
from store.store import Store
from tests.http.conftest import WORKER, Api

HOSTILE = "\"><script>alert(1)</script>'{{7*7}}"


def page(api: Api, path: str) -> str:
    answer = api.client.get(path)
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def started(api: Api) -> tuple[str, str]:
    """A running session: its path in the API, and that of its page."""
    session = api.session()
    api.begin(session)
    return session, f"/console/sessions/{session.rpartition('/')[2]}"


def sampled(api: Api, session: str, *completions: list[int]) -> str:
    body = {"prompt": {"chunks": [{"encoded_text": {"tokens": [41, 42]}}]}, "num_samples": len(completions)}
    body["sampling_params"] = {"max_tokens": 3, "temperature": 0.5}
    operation_id = api.client.post(f"{session}:sample", json=body).json["operation_id"]
    sequences = tuple(
        Sequence(np.array(tokens, np.int32), np.full(len(tokens), -0.6875, np.float32), StopReason.LENGTH)
        for tokens in completions
    )
    api.finish(operation_id, SampleResult(sequences))
    return str(operation_id)


def trained(api: Api, session: str, measured: OperationMetrics, advantages: list[float]) -> str:
    sample = {
        "model_input": {"chunks": [{"encoded_text": {"tokens": [11, 12, 13, 14]}}]},
        "loss_inputs": {
            "loss_mask": {"data": [0, 0, 1, 1]},
            "grpo_inputs": {"advantages": {"data": advantages}, "generator_logprobs": {"data": [0, 0, -1, -1]}},
        },
    }
    body = {"samples": [sample], "loss": {"type": "LOSS_TYPE_GRPO"}}
    operation_id = api.client.post(f"{session}:forward-backward", json=body).json["operation_id"]
    claim = api.store.claims.claim(operation_id, WORKER, str(uuid4()))
    assert claim
    result = ForwardBackwardResult(loss=measured.values.get("loss", 0.0), metrics={"entropy/mean": 0.4375})
    assert api.store.claims.finish(claim, result, measured)
    return str(operation_id)


def test_the_overview_tells_sessions_workers_and_their_newest_numbers(api: Api) -> None:
    session, path = started(api)
    trained(api, session, OperationMetrics(values={"loss": 0.8125}), [0, 0, 1, 1])
    api.client.post(f"{session}:log", json={"name": "reward", "step": 1, "value": 0.375})
    api.sample(session)
    text = page(api, "/")
    for shown in (path, "org/tiny", "0.8125", "0.375", WORKER, "1 of 100", "1 operation waiting or running", "running"):
        assert shown in text, shown
    assert 'class="alert"' not in text


def test_an_empty_overview_says_how_to_begin_on_this_very_server(api: Api) -> None:
    assert "<code>make demo URL=http://localhost</code>" in page(api, "/")


def test_the_overview_says_in_words_what_is_wrong(api: Api) -> None:
    session = api.session()
    (creation,) = api.redis.zrange(f"celerity:session:{session.rpartition('/')[2]}:queue", 0, 0)
    api.finish(creation.decode(), OperationError(ErrorCode.INVALID_INPUT, f"no such model {HOSTILE}"))
    (now, _) = api.redis.time()
    api.redis.zadd("celerity:workers", {WORKER: now - 100})
    text = page(api, "/")
    assert "No worker is alive" in text
    assert f"Worker {WORKER} has not said for" in text
    assert "ended in an error: no such model" in text
    assert HOSTILE not in text and html.escape(HOSTILE, quote=False).split("&lt;")[1] in text


def test_a_session_shows_state_curves_operations_and_checkpoints(api: Api) -> None:
    session, path = started(api)
    operation_id = sampled(api, session, [1, 2])
    waiting = api.sample(session)
    text = page(api, path)
    assert f"{path}/operations/{operation_id}" in text and f"{path}/operations/{waiting}" in text
    assert "rank 8, alpha 16, dropout 0.05" in text
    assert f'data-url="{path}/curves"' in text
    assert "data-live" in text
    for phase in ("arrived", "waited", "ran"):
        assert f'<rect class="{phase}"' in text and f'data-label="{phase}"' in text
    assert '<rect class="lay"' not in text, "nobody has read the result"
    assert api.client.get(f"{session}/operations/sample/{operation_id}").status_code == 200
    assert '<rect class="lay"' in page(api, path)


def test_tokens_are_shown_as_numbers_where_the_tokenizer_is_broken(
    settings: Settings, store: Store, api: Api, tmp_path: Path
) -> None:
    broken = tmp_path / "models" / "org" / "tiny" / "tokenizer.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{}")
    app = create_app(replace(settings, models_dir=tmp_path / "models"), store)
    shown = Api(app.test_client(), store, api.redis)
    session, path = started(shown)
    text = page(shown, f"{path}/operations/{sampled(shown, session, [57, 58])}")
    assert "41 " in text and "57 " in text and "58 " in text


def test_curves_come_as_points_after_those_that_the_page_has(api: Api) -> None:
    session, path = started(api)
    trained(api, session, OperationMetrics(trained=2, values={"loss": 0.5, "loss:sum": 9.0}), [0, 0, 1, 1])
    api.client.post(f"{session}:log", json={"name": HOSTILE, "step": 1, "value": 2})
    first = api.client.get(f"{path}/curves").json
    (point,) = first["measured"]
    assert (point["step"], point["values"], point["tokens"]) == (1, {"loss": 0.5}, 2)
    assert first["logged"][0]["values"] == {HOSTILE: 2.0}
    assert (first["more"], first["is_live"]) == (False, True)
    trained(api, session, OperationMetrics(values={"loss": 0.25}), [0, 0, 1, 1])
    second = api.client.get(f"{path}/curves?measured={point['id']}&logged={first['logged'][0]['id']}").json
    assert [point["values"] for point in second["measured"]] == [{"loss": 0.25}]
    assert second["logged"] == []
    assert api.client.get(f"{path}/curves?measured=-").status_code == 400


def test_a_sample_shows_what_was_asked_and_each_completion(api: Api) -> None:
    session, path = started(api)
    operation_id = sampled(api, session, [7, 8, 9], [10])
    text = page(api, f"{path}/operations/{operation_id}")
    assert "2 tokens" in text and "is not on this host, or cannot be used" in text
    assert ">41 </span>" in text and ">10 </span>" in text
    assert text.count("<article") == 2
    assert 'class="rare-1" title="token 7: -0.6875"' in text
    assert "ended by length, mean logprob -0.6875" in text
    assert "temperature" in text and "0.5" in text


def test_a_sample_that_is_long_is_cut_and_says_so(api: Api) -> None:
    session, path = started(api)
    operation_id = sampled(api, session, *([list(range(3))] * 18))
    text = page(api, f"{path}/operations/{operation_id}")
    assert text.count("<article") == 16 and "2 more completions are not shown" in text


def test_a_forward_backward_shows_advantages_and_what_the_mask_leaves_out(api: Api) -> None:
    session, path = started(api)
    operation_id = trained(api, session, OperationMetrics(values={"loss": 0.8125}), [0, 0, 0.5, -2.0])
    text = page(api, f"{path}/operations/{operation_id}")
    assert "2 of 3 targets are trained on" in text
    assert 'class="good-2" title="token 13: 0.5"' in text
    assert 'class="bad-5" title="token 14: -2"' in text
    assert 'class="masked" title="token 12"' in text
    assert "0.8125" in text and "0.4375" in text and "grpo" in text


def test_an_operation_that_failed_or_waits_says_so_and_is_cancelled_after_a_question(api: Api) -> None:
    session, path = started(api)
    operation_id = api.client.post(f"{session}:optim-step", json={"learning_rate": 0.125}).json["operation_id"]
    waiting = api.sample(session)
    api.finish(operation_id, OperationError(ErrorCode.INVALID_INPUT, HOSTILE))
    failed = page(api, f"{path}/operations/{operation_id}")
    assert "INVALID_INPUT" in failed and HOSTILE not in failed
    one = f"{path}/operations/{waiting}"
    assert f"{one}/cancel" in page(api, one)
    answer = api.client.post(f"{one}/cancel")
    assert answer.location == one
    assert "CANCELLED" in page(api, one)
    again = api.client.post(f"{path}/operations/{operation_id}/cancel")
    assert (again.status_code, "not started" in again.text) == (400, True)


def test_a_session_is_stopped_after_a_question(api: Api) -> None:
    session, path = started(api)
    assert f"{path}/stop" in page(api, path)
    answer = api.client.post(f"{path}/stop")
    assert answer.location == path
    assert api.client.get(session).json["status"] == "TRAINING_SESSION_STATUS_STOPPING"
    assert f"{path}/stop" not in page(api, path)


def test_an_adapter_is_saved_after_a_question(api: Api) -> None:
    session, path = started(api)
    assert f"{path}/save" in page(api, path)
    answer = api.client.post(f"{path}/save")
    assert "inference-checkpoint" in page(api, answer.location)
    (saving,) = api.client.get(f"{session}/operations").json
    assert (saving["kind"], saving["operation_id"]) == ("inference-checkpoint", answer.location.rpartition("/")[2])


def saved(api: Api, session: str, kind: CheckpointKind, part: Part) -> str:
    operation_id = api.client.post(f"{session}:{kind}-checkpoint", json={}).json["operation_id"]
    claim = api.store.claims.claim(operation_id, WORKER, str(uuid4()))
    assert claim
    folder = api.store.checkpoints.begin(claim)
    made = api.store.checkpoints.write(claim, folder, kind, 3, {part: [NewFile.of("adapter.bin", b"weights")]})
    assert api.store.claims.finish(claim, made)
    return str(operation_id)


def test_a_checkpoint_is_downloaded_and_deleted(api: Api) -> None:
    session, path = started(api)
    checkpoint_id = saved(api, session, CheckpointKind.INFERENCE, Part.ADAPTER)
    one = f"/console/checkpoints/{checkpoint_id}"
    assert one in page(api, path) and one in page(api, f"{path}/operations/{checkpoint_id}")
    link = page(api, one).split('<li><a href="')[1].split('"')[0]
    assert api.client.get(link).data == b"weights"
    answer = api.client.post(f"{one}/delete")
    assert answer.location == path
    assert api.client.get(one).status_code == 404


def test_a_training_checkpoint_says_how_to_go_on_from_it(api: Api) -> None:
    session, _ = started(api)
    checkpoint_id = saved(api, session, CheckpointKind.TRAINING, Part.STATE)
    assert f"&#34;checkpoint_id&#34;: &#34;{checkpoint_id}" in html.unescape(
        page(api, f"/console/checkpoints/{checkpoint_id}")
    ).replace('"', "&#34;")


def test_a_users_words_are_shown_and_not_run(api: Api) -> None:
    session, path = started(api)
    api.store.sessions.relabel(session.rpartition("/")[2], Labels(display_name=HOSTILE))
    for text in (page(api, "/"), page(api, path)):
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text and "{{7*7}}" in text


def test_a_page_without_its_session_is_gone(api: Api) -> None:
    session, path = started(api)
    answers: list[Any] = [api.client.get(f"{path}/operations/{uuid4()}"), api.client.get(f"{path}x")]
    assert session and [answer.status_code for answer in answers] == [404, 404]
