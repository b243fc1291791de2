"""Checkpoints when a worker dies: those that were being saved, and sessions that went on from one."""

import os
import signal
from pathlib import Path

import httpx
import pytest
import torch
from transformers import AutoModelForCausalLM

from stack.stack import Stack
from testing.bodies import whole
from tests.stories.client import Session, download, trained_session
from tests.stories.process_control import kill, restart
from tests.waiting import eventually

CHECKPOINTS = "/v1/rl/checkpoints"


def test_a_session_that_went_on_from_a_checkpoint_is_replayed_from_it_though_it_was_deleted(
    fragile: Stack, client: httpx.Client
) -> None:
    session, _ = trained_session(client, 2)
    kept, deleted = (session.save("training") for _ in range(2))
    resumed = [Session(client, checkpoint_id=checkpoint_id) for checkpoint_id in (kept, deleted)]
    for each in resumed:
        each.train([whole([1, 2, 3, 4, 5])], "LOSS_TYPE_CROSS_ENTROPY")
        each.step(0.05)
    before = [each.sample([1, 2], 2, max_tokens=6, seed=1) for each in resumed]
    assert client.delete(f"{CHECKPOINTS}/{deleted}").status_code == 204
    kill(fragile, "worker")
    restart(fragile, "worker")
    assert [each.sample([1, 2], 2, max_tokens=6, seed=1) for each in resumed] == before
    for each in resumed:
        each.train([whole([1, 2, 3, 4, 5])], "LOSS_TYPE_CROSS_ENTROPY")
        assert each.step(0.05)["step"] == 4


def test_a_checkpoint_whose_worker_was_killed_is_saved_by_the_next(fragile: Stack, client: httpx.Client) -> None:
    session, _ = trained_session(client, 1)
    os.kill(fragile.processes["worker"].pid, signal.SIGSTOP)
    paths = [session.submit(f"{kind}-checkpoint", {}) for kind in ("training", "inference")]
    kill(fragile, "worker")
    restart(fragile, "worker")
    for path in paths:
        checkpoint_id = session.result(path)["checkpoint_id"]
        assert client.get(f"{CHECKPOINTS}/{checkpoint_id}").json()["step"] == 1


def test_a_worker_killed_in_the_middle_of_a_merged_model_leaves_one_checkpoint_and_that_whole(
    fragile: Stack, client: httpx.Client, tmp_path: Path
) -> None:
    session = Session(client, "broad", dropout=0)
    session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")
    session.step(0.01)
    path = session.submit("inference-checkpoint", {})
    saved = fragile.plan.settings.data_dir / "objects" / "checkpoints" / path.rpartition("/")[2]
    eventually(lambda: any(saved.glob("*/merged/config.json")))
    kill(fragile, "worker")
    half = [file for file in saved.glob("*/merged/*") if "safetensors" in file.name]
    assert not any(file.name == "model.safetensors" for file in half), "it was killed too late to show anything"
    assert client.get(CHECKPOINTS, params={"session_id": session.path.rpartition("/")[2]}).json() == []
    restart(fragile, "worker")
    checkpoint_id = session.result(path)["checkpoint_id"]
    listed = client.get(CHECKPOINTS, params={"session_id": session.path.rpartition("/")[2]}).json()
    assert [checkpoint["id"] for checkpoint in listed] == [checkpoint_id]
    model = AutoModelForCausalLM.from_pretrained(download(client, checkpoint_id, "MERGED", tmp_path / "merged"))
    with torch.no_grad():
        logprobs_TV = model(input_ids=torch.tensor([[1, 2, 3]])).logits[0].log_softmax(-1)
    expected = session.logprobs([1, 2, 3])
    assert [logprobs_TV[0, 2].item(), logprobs_TV[1, 3].item()] == pytest.approx(expected, abs=1e-4)
