"""Objects of a local folder and of a store elsewhere, through the same few calls."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from obstore.store import MemoryStore, S3Store

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
