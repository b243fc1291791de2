"""Whatever lies in the models folder: served, or refused with what is wrong and what to do."""

import re
import time

import httpx
import pytest

from testing.bodies import SESSIONS, prompt
from tests.stories.client import Session

ATTENTION = {"self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj"}
PREFIX = "TRAINING_OPERATION_ERROR_CODE_"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pointer", "model.safetensors is a Git LFS pointer.*git lfs pull"),
        ("cut", "model.safetensors .* was cut short.*download it again"),
        ("shards", "names files that are missing: model-00002-of-00002.safetensors; copy or download them"),
        ("gptq", r"config.json has quantization_config \(gptq\).*serve the model that they were made from"),
        ("vocabulary", "config.json gives vocab_size as 267.*correct the one or the other"),
        ("deep", "config.json cannot be read: it is nested too deeply"),
    ],
)
def test_a_model_whose_files_show_a_fault_is_refused_at_create(http: httpx.Client, name: str, sentence: str) -> None:
    assert name not in {model["id"] for model in http.get("/v1/models").json()}
    answer = http.post(SESSIONS, json={"base_model": name})
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["field"] == "base_model" and re.search(f"'{name}' is refused: .*{sentence}", error["message"])


def test_a_model_whose_files_lack_a_layer_is_refused_with_their_names_and_then_at_create(http: httpx.Client) -> None:
    sentence = r"is refused: its files lack tensors that config.json describes: model.layers.2.* \(9 in all\)"
    # Each worker finds it out by itself, and says so with its next heartbeat.
    while (answer := http.post(SESSIONS, json={"base_model": "lacking"})).status_code != 400:
        session = Session.known(http, answer.json()["session_id"])
        while (seen := session.read())["status"] == "TRAINING_SESSION_STATUS_CREATING":
            time.sleep(0.05)
        assert seen["status"] == "TRAINING_SESSION_STATUS_ERROR" and re.search(sentence, seen["reason"])
    assert re.search(sentence, answer.json()["errors"][0]["message"])


@pytest.mark.parametrize(
    ("name", "adapted", "left_out"),
    [
        ("tiny", {"mlp.down_proj", "mlp.gate_proj", "mlp.up_proj", *ATTENTION}, set()),
        ("mixture", ATTENTION, {"mlp.experts.down_proj", "mlp.experts.gate_up_proj", "mlp.gate"}),
    ],
)
def test_models_and_sessions_say_what_is_adapted_and_what_of_a_layer_is_not(
    http: httpx.Client, name: str, adapted: set[str], left_out: set[str]
) -> None:
    (model,) = (model for model in http.get("/v1/models").json() if model["id"] == name)
    for answer in (model, Session(http, name).read()):
        assert (set(answer["adapted_modules"]), set(answer["unadapted_modules"])) == (adapted, left_out)


def test_what_a_config_leaves_out_is_what_transformers_has_for_it(http: httpx.Client) -> None:
    assert {model["id"]: model["context_length"] for model in http.get("/v1/models").json()}["short"] == 2048
    (sequence,) = Session(http, "short").sample(list(range(200)) * 4, max_tokens=1)
    assert len(sequence["tokens"]) == 1


@pytest.mark.parametrize("name", ["wordless", "remote-words"])
def test_a_model_whose_tokenizer_is_broken_trains_and_samples_by_ids(http: httpx.Client, name: str) -> None:
    session = Session(http, name)
    assert session.sample([1, 2], max_tokens=2)[0]["tokens"]


def test_stop_strings_are_refused_with_the_tokenizers_fault(http: httpx.Client) -> None:
    stopped = {"prompt": prompt([1]), "sampling_params": {"max_tokens": 2, "stop": ["a"]}}
    answer = http.post(f"{Session(http, 'wordless').path}:sample", json=stopped)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["field"] == "sampling_params.stop" and "tokenizer.json holds no tokenizer" in error["message"]
    session = Session(http, "remote-words")
    failed = session.error(session.submit("sample", stopped))
    assert failed["code"] == PREFIX + "INVALID_INPUT" and "Python code of its own" in failed["message"]
