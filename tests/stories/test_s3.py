"""A stack whose objects lie in a bucket."""

from pathlib import Path

import httpx
from safetensors.torch import load_file

from settings import load_settings
from stack.running import running_stack
from stack.stack import Stack
from store.store import open_store
from testing.bodies import whole
from tests.bucket import Bucket
from tests.stories.client import Session, download, trained_session
from tests.stories.conftest import FRAGILE
from tests.stories.process_control import kill, restart
from tests.waiting import eventually

CHECKPOINTS = "/v1/rl/checkpoints"
ADAPTER = "adapter_model.safetensors"


def test_a_session_is_saved_recovered_and_gone_on_from_and_what_is_deleted_leaves_the_bucket(
    bucket: Bucket, tmp_path: Path, models_dir: Path
) -> None:
    settings = {**FRAGILE, "CELERITY_OBJECTS_URL": bucket.url}
    with (
        running_stack(tmp_path / "data", models_dir, settings) as stack,
        httpx.Client(base_url=stack.url, timeout=60) as client,
    ):
        session, before = trained_session(client, 5)
        training, inference = session.save("training"), session.save("inference")
        adapter = read_through_links(client, bucket, inference, tmp_path)
        eventually(lambda: any(key.startswith("run/snapshots/") for key in bucket.names()))
        kill(stack, "worker")
        restart(stack, "worker")
        assert session.sample([1, 2], 2, max_tokens=6, seed=1) == before
        recovered = download(client, session.save("inference"), "ADAPTER", tmp_path / "recovered")
        assert (recovered / ADAPTER).read_bytes() == adapter
        go_on_from(client, training, before)
        assert {training, inference} <= saved_in(bucket)
        for checkpoint_id in (training, inference):
            assert client.delete(f"{CHECKPOINTS}/{checkpoint_id}").status_code == 204
        sweep(stack)
        assert len(saved_in(bucket)) == 1
        assert not {training, inference} & saved_in(bucket)
    assert not (tmp_path / "data" / "objects").exists()


def read_through_links(client: httpx.Client, bucket: Bucket, checkpoint_id: str, folder: Path) -> bytes:
    """The adapter's matrices, as the links give them and as they lie in the bucket."""
    path = f"{CHECKPOINTS}/{checkpoint_id}/download?variant=CHECKPOINT_VARIANT_ADAPTER"
    assert all(file["url"].startswith(bucket.endpoint) for file in client.get(path).json()["data"])
    matrices = (download(client, checkpoint_id, "ADAPTER", folder / "adapter") / ADAPTER).read_bytes()
    (key,) = [key for key in bucket.names() if checkpoint_id in key and key.endswith(f"adapter/{ADAPTER}")]
    assert bucket.read(key) == matrices
    assert load_file(download(client, checkpoint_id, "MERGED", folder / "merged") / "model.safetensors")
    return matrices


def go_on_from(client: httpx.Client, checkpoint_id: str, sampled: list[dict[str, object]]) -> None:
    resumed = Session(client, checkpoint_id=checkpoint_id)
    assert resumed.sample([1, 2], 2, max_tokens=6, seed=1) == sampled
    resumed.train([whole([1, 2, 3, 4, 5])], "LOSS_TYPE_CROSS_ENTROPY")
    assert resumed.step(0.05)["step"] == 6
    client.post(f"{resumed.path}:stop")
    eventually(lambda: resumed.read()["status"] == "TRAINING_SESSION_STATUS_STOPPED")


def saved_in(bucket: Bucket) -> set[str]:
    """The ids of the checkpoints that have objects."""
    return {key.split("/")[2] for key in bucket.names() if key.startswith("run/checkpoints/")}


def sweep(stack: Stack) -> None:
    """As a worker does every half a minute."""
    store = open_store(load_settings(stack.processes["worker"].service.environment))
    store.janitor.sweep()
    store.close()
