"""Objects in a bucket, over the protocol itself; what they have in common with others is in test_objects.py."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from store.errors import ObjectsAwayError
from store.objects import Objects, open_objects
from tests.bucket import Bucket
from tests.tcp_proxy import TcpProxy

# More than one part of an upload.
LARGE = [b"ab" * 4_000_000, b"cd" * 4_000_000]


@pytest.fixture
def objects(bucket: Bucket, tmp_path: Path) -> Objects:
    return open_objects(bucket.url, tmp_path)


def test_objects_lie_below_the_prefix_as_they_were_written(bucket: Bucket, objects: Objects) -> None:
    objects.put("a/small", b"1")
    objects.put("a/large", iter(LARGE))
    assert bucket.names() == ["run/a/large", "run/a/small"]
    assert bucket.read("run/a/large") == b"".join(LARGE)
    assert bucket.uploads() == []


def test_a_large_object_is_not_there_before_it_is_whole(bucket: Bucket, objects: Objects) -> None:
    def chunks() -> Iterator[bytes]:
        yield from LARGE
        assert bucket.uploads(), "it is on its way"
        assert bucket.names() == []
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        objects.put("a/large", chunks())
    assert (bucket.names(), bucket.uploads()) == ([], [])


def test_a_presigned_url_needs_no_key_of_its_own(bucket: Bucket, objects: Objects) -> None:
    objects.put("a/b", b"weights")
    url = objects.presigned("a/b", 60)
    assert url.startswith(bucket.endpoint)
    assert httpx.get(url).content == b"weights"


def test_a_folder_of_more_objects_than_a_page_of_a_listing_is_deleted_whole(bucket: Bucket, objects: Objects) -> None:
    for number in range(120):
        objects.put(f"a/{number}", b"1")
    objects.put("ab", b"1")
    objects.delete("a/")
    assert bucket.names() == ["run/ab"]


def test_an_upload_that_the_bucket_has_no_longer_may_be_tried_again(bucket: Bucket, objects: Objects) -> None:
    def chunks() -> Iterator[bytes]:
        yield LARGE[0]
        bucket.abort_uploads()
        yield LARGE[1]

    with pytest.raises(ObjectsAwayError):
        objects.put("a/large", chunks())
    objects.put("a/large", iter(LARGE))
    assert bucket.read("run/a/large") == b"".join(LARGE)


def test_a_bucket_that_can_be_read_is_good_though_it_is_empty(objects: Objects) -> None:
    objects.check()
    objects.put("a", b"1")
    objects.check()


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_is_not_there_is_refused_by_the_name_of_its_setting(tmp_path: Path) -> None:
    objects = open_objects("s3://another/run", tmp_path)
    with pytest.raises(ValueError, match=r"^CELERITY_OBJECTS_URL cannot be opened: .*another.* 404 Not Found$"):
        objects.check()


def test_a_bucket_that_cannot_be_reached_is_not_refused(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TcpProxy(bucket.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{proxy.address}")
        objects = open_objects(bucket.url, tmp_path)
        proxy.cut()
        with pytest.raises(ObjectsAwayError):
            objects.check()
        proxy.restore()
        objects.check()


def test_an_endpoint_without_tls_is_refused_unless_it_is_allowed(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(ValueError, match=r"^CELERITY_OBJECTS_URL cannot be opened: "):
        open_objects(bucket.url, tmp_path).check()
