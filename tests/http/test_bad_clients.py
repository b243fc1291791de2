"""Clients that send nothing, or slowly, or nonsense, or do not read: others are served as if they were not there."""

import contextlib
import resource
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from socket import create_connection

import orjson
import pytest

from domain.api_key import KeyLimits
from stack.address import free_port
from store.store import Store
from tests.http.conftest import SESSIONS
from tests.http.serving import FILES, request, serving
from tests.waiting import eventually

LIMIT = 20_000_000
HALF = b"POST /v1/rl/training-sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Ty"
SAMPLE = orjson.dumps(
    {"prompt": {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}, "sampling_params": {"max_tokens": 2}}
)

Open = Callable[..., socket.socket]


def head(path: str = SESSIONS, method: str = "POST", **headers: object) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


IN_CHUNKS = head(Transfer_Encoding="chunked")


def answer_of(connection: socket.socket) -> tuple[int, dict]:
    """The status, and the JSON of an answer that ends its connection."""
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
    first, _, body = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), orjson.loads(body)


@pytest.fixture(autouse=True)
def worker(store: Store) -> Store:
    """Whom the store of the module's servers knows."""
    return store


@pytest.fixture(scope="module")
def settings_of(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {
        "CELERITY_REDIS_URL": redis_url,
        "DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "CELERITY_MAX_BODY_BYTES": str(LIMIT),
        "CELERITY_MAX_INFLIGHT_BODY_BYTES": str(LIMIT),
    }


@pytest.fixture(scope="module")
def port(settings_of: dict[str, str]) -> Iterator[int]:
    with serving(port := free_port(), **settings_of):
        yield port


@pytest.fixture(scope="module")
def hasty(settings_of: dict[str, str]) -> Iterator[int]:
    """A server that gives nobody more than a second."""
    with serving(port := free_port(), **settings_of, CELERITY_ARRIVAL_TIMEOUT="1"):
        yield port


@pytest.fixture
def connect() -> Iterator[Open]:
    """Opens a connection, sends what is given, and closes it at the end of the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as stack:

        def opened(port: int, sent: bytes = b"") -> socket.socket:
            connection = stack.enter_context(create_connection(("127.0.0.1", port), timeout=30))
            connection.sendall(sent)
            return connection

        yield opened
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def check_served(port: int) -> None:
    assert request(port, "GET", "/healthz")[0] == 200
    status, session = request(port, "POST", SESSIONS, orjson.dumps({"base_model": "org/tiny"}))
    assert status == 200
    assert request(port, "POST", f"{SESSIONS}/{session['session_id']}:sample", SAMPLE)[0] == 200


@pytest.mark.parametrize("sent", [b"", HALF, head(Content_Length=30_000) + b"{", head(Content_Length=LIMIT) + b"{"])
def test_two_thousand_who_send_nothing_more_cost_nothing(port: int, connect: Open, sent: bytes) -> None:
    assert FILES < 2000
    for _ in range(2000):
        connect(port, sent)
    for _ in range(3):
        check_served(port)


def test_one_who_sends_nothing_is_closed(hasty: int, connect: Open) -> None:
    status, error = answer_of(connect(hasty))
    assert (status, error["code"], set(error)) == (408, 408, {"code", "message", "request_id"})


@pytest.mark.parametrize("sent", [HALF, head(Content_Length=100) + b"{", head(Content_Length=LIMIT) + b"{"])
def test_one_who_sends_a_byte_now_and_then_is_told_that_it_took_too_long(
    hasty: int, connect: Open, sent: bytes
) -> None:
    slow, is_over = connect(hasty, sent), threading.Event()

    def dribble() -> None:
        while not is_over.wait(0.1):
            with contextlib.suppress(OSError):
                slow.sendall(b"x")

    threading.Thread(target=dribble).start()
    try:
        assert answer_of(slow)[0] == 408
    finally:
        is_over.set()


def test_one_who_does_not_read_is_cut_off(hasty: int, connect: Open) -> None:
    deaf = connect(hasty)
    asked = head("/openapi.json", "GET")

    def is_cut_off() -> bool:
        try:
            deaf.sendall(asked * 100)
        except (ConnectionError, TimeoutError):
            return True
        return False

    eventually(is_cut_off, lambda: "it may ask for ever", 60)
    check_served(hasty)


def test_one_who_comes_back_after_a_pause_is_answered(hasty: int) -> None:
    """Between two requests a connection may be silent for longer than within one."""
    kept = HTTPConnection("127.0.0.1", hasty)
    kept.request("GET", "/healthz")
    assert kept.getresponse().read()
    assert select.select([kept.sock], [], [], 3)[0] == [], "it is left alone for as long as nobody asks"
    kept.request("GET", "/healthz")
    assert kept.getresponse().status == 200
    kept.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        head(Transfer_Encoding="chunked") + b"nonsense\r\n",
        head(Transfer_Encoding="chunked") + b"5\r\n{}\r\n0\r\n\r\n",
        head(Transfer_Encoding="chunked") + b"-1\r\n",
        head(Content_Length="-1"),
        head(Content_Length="1, 2"),
    ],
)
def test_what_is_no_http_is_a_400(port: int, connect: Open, sent: bytes) -> None:
    status, error = answer_of(connect(port, sent))
    assert (status, error["code"]) == (400, 400)
    assert error["message"]


@pytest.mark.parametrize("sent", [HALF, IN_CHUNKS + b"2;", IN_CHUNKS + b"0\r\nX: "])
def test_an_endless_head_is_refused_and_so_is_what_follows_a_body(port: int, connect: Open, sent: bytes) -> None:
    status, error = answer_of(connect(port, sent + b"x" * 100_000))
    assert (status, error["code"]) == (431, 431)


def test_a_body_in_many_chunks_whose_sizes_come_apart_is_read(port: int, connect: Open) -> None:
    """Of which those sizes alone are as much as a head may be."""
    slow = connect(port, IN_CHUNKS)
    slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(10):
        slow.sendall(b"0" * 10_000 + b"1\r\n")
        time.sleep(0.02)
        slow.sendall(b" \r\n")
    slow.sendall(b"2\r\n{}\r\n0\r\n\r\n")
    assert slow.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_what_follows_a_body_is_no_header(port: int, connect: Open) -> None:
    """Where it could name a caller, or a key, that what stands between the peer and the server has not seen."""
    body = orjson.dumps({"base_model": "org/tiny"})
    begun = head(Transfer_Encoding="chunked", Connection="close")
    sent = begun + b"%x\r\n%b\r\n0\r\nIdempotency-Key: one\r\n\r\n" % (len(body), body)
    first, second = (answer_of(connect(port, sent))[1]["session_id"] for _ in range(2))
    assert first != second


def test_a_peer_says_nothing_about_where_the_application_is(port: int) -> None:
    for name in ("SCRIPT_NAME", "Script-Name", "PATH_INFO", "X-Script-Name"):
        assert request(port, "GET", "/healthz", None, False, 10, **{name: "/healthz"})[0] == 200, name


def test_a_header_with_an_underscore_is_taken_for_no_other(port: int) -> None:
    asked = orjson.dumps({"base_model": "org/tiny"})
    first, second = (request(port, "POST", SESSIONS, asked, Idempotency_Key="one")[1] for _ in range(2))
    assert first["session_id"] != second["session_id"]


def test_beyond_the_room_for_large_bodies_another_is_refused_before_it_is_read(port: int, connect: Open) -> None:
    large = connect(port, head(Content_Length=LIMIT, Expect="100-continue"))
    assert large.recv(65536).startswith(b"HTTP/1.1 100 ")
    asked = head(Content_Length=1_000_000, Connection="close")
    status, error = answer_of(connect(port, asked))
    assert (status, "large bodies" in error["message"]) == (503, True), "another one is not even sent"
    check_served(port)
    large.close()
    body = orjson.dumps({"base_model": "org/tiny"}) + b" " * 1_000_000
    eventually(lambda: request(port, "POST", SESSIONS, body)[0] == 200, lambda: "the room is not given back", 30)


def test_one_key_leaves_room_for_the_large_bodies_of_others(
    settings_of: dict[str, str], store: Store, connect: Open
) -> None:
    alice, ben = (f"Bearer {store.api_keys.create(name, KeyLimits())[1]}" for name in ("alice", "ben"))
    with serving(port := free_port(), **settings_of):
        for size in (LIMIT // 2, LIMIT // 4):
            slow = connect(port, head(Content_Length=size, Expect="100-continue", Authorization=alice))
            assert slow.recv(65536).startswith(b"HTTP/1.1 100 ")
        body = orjson.dumps({"base_model": "org/tiny"}) + b" " * 1_000_000
        assert request(port, "POST", SESSIONS, body, Authorization=alice)[0] == 503
        assert request(port, "POST", SESSIONS, body, Authorization=ben)[0] == 200


def test_without_a_key_nothing_large_is_read(settings_of: dict[str, str], store: Store, connect: Open) -> None:
    _, key = store.api_keys.create("alice", KeyLimits(max_body_bytes=100_000))
    with serving(port := free_port(), **settings_of):
        asked = head(Content_Length=LIMIT, Connection="close", Expect="100-continue")
        assert answer_of(connect(port, asked))[0] == 401
        own = head(Content_Length=100_001, Connection="close", Authorization=f"Bearer {key}")
        status, error = answer_of(connect(port, own))
        assert (status, error["message"]) == (413, "the body is over the limit of 100000 bytes")
        assert answer_of(connect(port, head("/files/x", "PUT", Content_Length=LIMIT, Connection="close")))[0] == 403
        body = orjson.dumps({"base_model": "org/tiny"})
        padded = body + b" " * (100_000 - len(body))
        assert request(port, "POST", SESSIONS, padded, Authorization=f"Bearer {key}")[0] == 200
        assert request(port, "POST", SESSIONS, iter([padded, b" "]), True, Authorization=f"Bearer {key}")[0] == 413
