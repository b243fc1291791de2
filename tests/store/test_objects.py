"""Objects of a local folder and of a store elsewhere, through the same few calls."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from obstore.store import MemoryStore, S3Store

from store.errors import ObjectMissingError, ObjectsAwayError
from store.objects import Objects, open_objects

DATA = [b"ab" * 1_000_000, b"", b"cd" * 5_000_000, b"e"]


@pytest.fixture(params=["a folder", "memory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "memory":
        return Objects(MemoryStore())
    return open_objects(request.getfixturevalue("bucket").url if request.param == "s3" else "", tmp_path)


def test_chunks_become_one_object(objects: Objects) -> None:
    objects.put("a/b", iter(DATA))
    assert objects.get("a/b") == b"".join(DATA)
    assert objects.size("a/b") == 12_000_001


def test_what_raises_while_chunks_are_made_leaves_no_object(objects: Objects) -> None:
    def chunks() -> Iterator[bytes]:
        yield from DATA
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        objects.put("a/b", chunks())
    with pytest.raises(FileNotFoundError):
        objects.get("a/b")


def test_an_object_that_is_not_there_is_a_missing_file_and_deleted_without_error(objects: Objects) -> None:
    for read in (objects.get, objects.size):
        with pytest.raises(FileNotFoundError):
            read("never/there")
    objects.delete("never/there")


def test_a_folder_is_deleted_whole_and_alone(objects: Objects) -> None:
    for path in ("a/1/x", "a/1/y/z", "a/10/x", "b"):
        objects.put(path, b"1")
    objects.delete("a/1/")
    objects.delete("never/there/")
    assert [objects.get(path) for path in ("a/10/x", "b")] == [b"1", b"1"]
    for path in ("a/1/x", "a/1/y/z"):
        with pytest.raises(FileNotFoundError):
            objects.size(path)


def test_a_folder_that_is_empty_then_goes_too_and_what_was_half_written(tmp_path: Path) -> None:
    objects, root = open_objects("", tmp_path), tmp_path / "objects"
    for path in ("requests/1", "results/1/a", "checkpoints/1/a/x", "checkpoints/1/b/x"):
        objects.put(path, b"1")
    for half in ("requests/1#1", "requests/2#1", "requests/2#2"):
        (root / half).write_bytes(b"1")
    objects.delete("checkpoints/1/a/")
    assert (root / "checkpoints/1/b/x").exists()
    for path in ("requests/1", "requests/2", "results/1/a", "checkpoints/1/b/"):
        objects.delete(path)
    assert list(root.iterdir()) == []
    objects.put("requests/1", b"1")


def calls(objects: Objects) -> list[Callable[[], object]]:
    return [
        lambda: objects.put("a/c", b"2"),
        lambda: objects.put("a/c", iter([b"2"])),
        lambda: objects.get("a/b"),
        lambda: objects.get_kept("a/b"),
        lambda: objects.size("a/b"),
        lambda: objects.delete("a/b"),
        lambda: objects.delete("a/"),
        objects.reach,
    ]


def test_a_folder_that_is_gone_or_another_thing_is_away_and_comes_back_as_it_was(tmp_path: Path) -> None:
    objects, root = open_objects("", tmp_path), tmp_path / "objects"
    objects.put("a/b", b"1")
    root.rename(tmp_path / "away")
    for call in calls(objects):
        with pytest.raises(ObjectsAwayError):
            call()
    assert not root.exists(), "it is not made anew"
    root.write_bytes(b"")
    for call in calls(objects):
        with pytest.raises(ObjectsAwayError):
            call()
    root.unlink()
    (tmp_path / "away").rename(root)
    assert objects.get_kept("a/b") == b"1"
    objects.reach()


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_does_not_answer_or_is_gone_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = open_objects("s3://another/run", tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    silent = open_objects("s3://bucket/run", tmp_path)
    for call in calls(silent):
        with pytest.raises(ObjectsAwayError) as away:
            call()
        assert "\n" not in str(away.value)
    for call in (lambda: gone.put("a/c", b"2"), lambda: gone.get_kept("a/b"), gone.reach):
        with pytest.raises(ObjectsAwayError):
            call()


def test_a_disk_without_room_for_what_is_asked_is_away(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.reach(room=1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=999))
    objects.reach(room=999)
    if objects.free_bytes() is not None:
        with pytest.raises(ObjectsAwayError, match="only 999 bytes free"):
            objects.reach(room=1000)


@pytest.mark.parametrize(
    ("code", "refusal"), [(errno.ENOSPC, ObjectsAwayError), (errno.EROFS, ValueError), (errno.EACCES, ValueError)]
)
def test_at_the_start_a_full_disk_may_pass_and_one_that_takes_no_files_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, refusal: type[Exception]
) -> None:
    objects = open_objects("", tmp_path)

    def refuse(**_: object) -> None:
        raise OSError(code, "refused")

    monkeypatch.setattr("store.folder.TemporaryFile", refuse)
    with pytest.raises(refusal):
        objects.check()


def test_one_object_among_others_is_lost_and_all_of_them_are_away(objects: Objects) -> None:
    """As when a disk is not mounted: its folder is there, and empty."""
    with pytest.raises(ObjectsAwayError):
        objects.get_kept("a/b")
    objects.put("a/c", b"1")
    with pytest.raises(ObjectMissingError):
        objects.get_kept("a/b")


def test_only_local_objects_are_files_on_a_disk_of_known_room(tmp_path: Path) -> None:
    local, elsewhere = open_objects("", tmp_path), Objects(MemoryStore())
    local.put("a/b", b"1")
    file = local.file("a/b")
    assert file is not None
    assert file.read_bytes() == b"1"
    assert (local.free_bytes() or 0) > 0
    assert (elsewhere.file("a/b"), elsewhere.free_bytes()) == (None, None)


def test_objects_of_an_s3_store_have_presigned_urls() -> None:
    store = S3Store("bucket", prefix="run", region="eu-central-1", access_key_id="id", secret_access_key="secret")
    url = urlsplit(Objects(store).presigned("checkpoints/1/config.json", 60))
    assert url.path == "/bucket/run/checkpoints/1/config.json"
    query = parse_qs(url.query)
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-Signature"][0]


def test_a_url_says_where_objects_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("REGION", "eu-central-1"), ("ACCESS_KEY_ID", "id"), ("SECRET_ACCESS_KEY", "secret")):
        monkeypatch.setenv(f"AWS_{name}", value)
    elsewhere = open_objects("s3://bucket/run", tmp_path)
    assert elsewhere.file("a/b") is None
    assert urlsplit(elsewhere.presigned("a/b", 60)).path == "/bucket/run/a/b"
    (tmp_path / "chosen").mkdir()
    open_objects(f"file://{tmp_path}/chosen", tmp_path).put("a/b", b"1")
    assert (tmp_path / "chosen" / "a" / "b").read_bytes() == b"1"


@pytest.mark.parametrize(
    "url", ["bucket", "s3://", "ftp://host/folder", "file:///no/such/folder", "memory:///", "http://host/bucket"]
)
def test_a_url_that_cannot_be_opened_is_refused_by_the_name_of_its_setting(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError, match=r"^CELERITY_OBJECTS_URL cannot be opened: .+") as refused:
        open_objects(url, tmp_path)
    assert "\n" not in str(refused.value)
