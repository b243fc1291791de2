"""What is saved of a session is that session: gone on from, or loaded by other software."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from testing.bodies import SESSIONS, train_body, whole
from tests.stories.client import Session, download

TOKENS = [10, 20, 30, 40, 50, 60]
ADAPTER = "adapter_model.safetensors"


def train(session: Session, steps: int, learning_rate: float = 0.02, **adamw: float) -> None:
    for _ in range(steps):
        session.train([whole(TOKENS)], "LOSS_TYPE_CROSS_ENTROPY")
        session.step(learning_rate, **adamw)


def exported(http: httpx.Client, session: Session, folder: Path) -> bytes:
    """The adapter's matrices as they are downloaded."""
    return (download(http, session.save("inference"), "ADAPTER", folder) / ADAPTER).read_bytes()


def logprobs(model: torch.nn.Module) -> list[float]:
    """Of each of TOKENS after the first."""
    tokens = torch.tensor([TOKENS])
    with torch.no_grad():
        logprobs_TV = model(input_ids=tokens).logits[0].float().log_softmax(-1)
    values: list[float] = logprobs_TV[:-1].gather(-1, tokens[0, 1:, None])[:, 0].tolist()
    return values


@pytest.fixture(scope="module")
def session(http: httpx.Client) -> Session:
    """After three steps."""
    session = Session(http, rank=4, alpha=16, dropout=0)
    train(session, 3)
    return session


def test_a_session_that_goes_on_has_the_same_weights_moments_and_step_to_the_last_bit(
    http: httpx.Client, session: Session, tmp_path: Path
) -> None:
    checkpoint_id = session.save("training")
    resumed = Session(http, checkpoint_id=checkpoint_id)
    shown = resumed.read()
    assert (shown["step"], shown["checkpoint_id"], shown["lora_config"]["rank"]) == (3, checkpoint_id, 4)
    before = exported(http, session, tmp_path / "saved")
    assert exported(http, resumed, tmp_path / "resumed") == before
    for one in (session, resumed):
        train(one, 2)
    after = exported(http, session, tmp_path / "saved-later")
    assert after != before
    assert exported(http, resumed, tmp_path / "resumed-later") == after
    assert resumed.read()["step"] == session.read()["step"] == 5


def test_a_step_without_learning_after_resuming_writes_no_old_weights_back(
    http: httpx.Client, session: Session, tmp_path: Path
) -> None:
    resumed = Session(http, checkpoint_id=session.save("training"))
    saved = exported(http, session, tmp_path / "saved")
    train(resumed, 1, learning_rate=0.0, weight_decay=0.0)
    assert exported(http, resumed, tmp_path / "stepped") == saved


def test_gradients_that_no_step_has_used_are_not_saved(http: httpx.Client) -> None:
    session = Session(http)
    session.train([whole(TOKENS)], "LOSS_TYPE_CROSS_ENTROPY")
    resumed = Session(http, checkpoint_id=session.save("training"))
    error = resumed.error(resumed.submit("optim-step", {}))
    assert error["code"] == "TRAINING_OPERATION_ERROR_CODE_INVALID_INPUT"
    assert session.step()["step"] == 1, "the session that was saved still has them"


def test_a_checkpoint_is_of_its_turn_in_the_order_of_operations(http: httpx.Client, tmp_path: Path) -> None:
    session = Session(http, dropout=0)
    train(session, 1)
    forward = train_body([whole(TOKENS)], "LOSS_TYPE_CROSS_ENTROPY")
    sent = [session.submit(kind, body) for kind, body in (("inference-checkpoint", {}), ("forward-backward", forward))]
    sent += [session.submit(kind, {}) for kind in ("optim-step", "inference-checkpoint")]
    first, _, _, last = [session.result(path) for path in sent]
    assert [result["model_name"].split("-step-")[1].split("-")[0] for result in (first, last)] == ["1", "2"]
    early, late = (
        (download(http, result["checkpoint_id"], "ADAPTER", tmp_path / name) / ADAPTER).read_bytes()
        for result, name in ((first, "first"), (last, "last"))
    )
    assert early != late


@pytest.mark.parametrize(
    ("lora", "scale"), [({"rank": 4, "alpha": 16}, 4.0), ({"rank": 64, "alpha": 16}, 0.25), ({}, 2.0)]
)
@pytest.mark.parametrize("base_model", ["tiny", "tied"])
def test_both_downloads_are_the_session_and_differ_by_alpha_over_rank_times_b_a(
    http: httpx.Client, models_dir: Path, tmp_path: Path, base_model: str, lora: dict[str, Any], scale: float
) -> None:
    session = Session(http, base_model, dropout=0, **lora)
    train(session, 1)
    checkpoint_id = session.save("inference")
    expected = session.logprobs(TOKENS)
    http.post(f"{session.path}:stop")
    adapter = download(http, checkpoint_id, "ADAPTER", tmp_path / "adapter")
    merged = download(http, checkpoint_id, "MERGED", tmp_path / "merged")

    base = load_file(models_dir / base_model / "model.safetensors")
    matrices, tensors = load_file(adapter / ADAPTER), load_file(merged / "model.safetensors")
    changed = {name.removeprefix("base_model.model.").rsplit(".", 2)[0] for name in matrices}
    assert base.keys() == tensors.keys()
    for name, weight in base.items():
        layer = name.removesuffix(".weight")
        if layer in changed:
            a, b = (matrices[f"base_model.model.{layer}.lora_{side}.weight"].double() for side in "AB")
            torch.testing.assert_close(tensors[name].double() - weight, scale * b @ a, rtol=1e-5, atol=1e-6)
        else:
            assert torch.equal(tensors[name], weight)

    peft = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(models_dir / base_model), adapter)
    assert logprobs(peft) == pytest.approx(expected, abs=1e-4)
    assert logprobs(AutoModelForCausalLM.from_pretrained(merged)) == pytest.approx(expected, abs=1e-4)


def test_before_any_step_the_exports_are_the_base_model(http: httpx.Client, models_dir: Path, tmp_path: Path) -> None:
    checkpoint_id = Session(http).save("inference")
    matrices = load_file(download(http, checkpoint_id, "ADAPTER", tmp_path / "adapter") / ADAPTER)
    assert all((".lora_B." in name) == (not matrix.any()) for name, matrix in matrices.items())
    merged = load_file(download(http, checkpoint_id, "MERGED", tmp_path / "merged") / "model.safetensors")
    base = load_file(models_dir / "tiny" / "model.safetensors")
    assert all(torch.equal(merged[name], weight) for name, weight in base.items())


def test_a_stopped_session_can_be_gone_on_from_and_takes_no_more_checkpoints(http: httpx.Client) -> None:
    session = Session(http, dropout=0)
    train(session, 1)
    checkpoint_id, expected = session.save("training"), session.logprobs(TOKENS)
    http.post(f"{session.path}:stop")
    assert Session(http, checkpoint_id=checkpoint_id).logprobs(TOKENS) == expected
    refused = http.post(f"{session.path}:training-checkpoint", json={})
    assert refused.status_code == 400


def test_an_inference_checkpoint_or_another_base_model_is_refused_at_once(http: httpx.Client, session: Session) -> None:
    training, inference = session.save("training"), session.save("inference")
    for body in (
        {"base_model": "tiny", "checkpoint_id": inference},
        {"base_model": "tied", "checkpoint_id": training},
        {"base_model": "tiny", "checkpoint_id": training, "lora_config": {"rank": 5}},
    ):
        assert http.post(SESSIONS, json=body).status_code == 400
