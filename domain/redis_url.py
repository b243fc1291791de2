"""Where Redis is: one URL, and what each of its two users (redis-py and Celery's broker) is told."""

from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

import msgspec

FORMS = "redis://host:6379/0, rediss://host:6379/0 (TLS) or unix:///path?db=0"
TCP = ("redis", "valkey")
TLS = ("rediss", "valkeys")
UNIX = ("unix", "redis+socket")
DEFAULT_HOST, DEFAULT_PORT = "localhost", 6379
# Both users know it by either name.
DATABASE = ("db", "virtual_host")
FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
CHOICES: dict[str, dict[str, Any]] = {
    "ssl_cert_reqs": {"required": "required", "CERT_REQUIRED": "required", "none": "none", "CERT_NONE": "none"},
    "ssl_check_hostname": {"true": True, "True": True, "false": False, "False": False},
}


class RedisUrl(msgspec.Struct, frozen=True, kw_only=True):
    """One server. It has a `path` where it listens on a Unix socket, and else a host and a port; `tls` has redis-py's
    ssl_ options, None for a connection in the clear."""

    host: str = ""
    port: int = DEFAULT_PORT
    path: str = ""
    database: int = 0
    username: str = ""
    password: str = ""
    tls: dict[str, Any] | None = None

    def client_options(self) -> dict[str, Any]:
        """Of a connection of redis-py, beside its class."""
        place: dict[str, Any] = {"path": self.path} if self.path else {"host": self.host, "port": self.port}
        return {
            **place,
            "db": self.database,
            "username": self.username or None,
            "password": self.password or None,
            **(self.tls or {}),
        }

    @property
    def broker_url(self) -> str:
        """As Celery has it for a broker. What `tls` says is in Celery's own settings beside it."""
        if self.path:
            return f"redis+socket://{self._user}{quote(self.path)}?virtual_host={self.database}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'redis' if self.tls is None else 'rediss'}://{self._user}{host}:{self.port}/{self.database}"

    @property
    def _user(self) -> str:
        if not (self.username or self.password):
            return ""
        return f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@"


def read_redis_url(text: str) -> RedisUrl:
    """Raises ValueError, whose sentence never has the URL, nor a password, in it."""
    parts = _split(text)
    parameters = _parameters(parts.query)
    user: dict[str, Any] = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    database = _database(parts, parameters)
    if parts.scheme in UNIX:
        if parts.hostname or not parts.path.strip("/"):
            raise ValueError("a Unix socket is named by its whole path, after three slashes: unix:///path")
        _refuse_more(parameters)
        return RedisUrl(path=unquote(parts.path), database=database, **user)
    tls = _tls(parameters) if parts.scheme in TLS else None
    _refuse_more(parameters)
    return RedisUrl(
        host=unquote(parts.hostname or DEFAULT_HOST),
        port=parts.port or DEFAULT_PORT,
        database=database,
        tls=tls,
        **user,
    )


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in (*TCP, *TLS, *UNIX) and "://" in text and not parts.fragment
        # Read here, since a port that is none is found when it is read. A list of servers is not one.
        is_whole = is_whole and parts.port != 0 and not {",", ";"}.intersection(parts.hostname or "")
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError(
            f"it is no URL of one Redis server: write {FORMS}, with :password@ or user:password@ before the host, each "
            "of # / ? @ : ; % [ ] in a password as a percent code"
        )
    return parts


def _parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in parameters:
            raise ValueError(f"its parameter {name} comes twice")
        parameters[name] = value
    return parameters


def _database(parts: SplitResult, parameters: dict[str, str]) -> int:
    """From the path, or from a parameter, which leaves `parameters`."""
    given = [parameters.pop(name) for name in DATABASE if name in parameters]
    if parts.scheme not in UNIX and parts.path.strip("/"):
        given.append(parts.path.strip("/"))
    if len(given) > 1:
        raise ValueError("it names the database twice")
    if given and not (given[0].isascii() and given[0].isdecimal()):
        raise ValueError("its database must be a number")
    return int(given[0]) if given else 0


def _tls(parameters: dict[str, str]) -> dict[str, Any]:
    """What leaves `parameters` of it. Whoever does not ask for less has the server's certificate and name checked."""
    tls: dict[str, Any] = {"ssl_cert_reqs": "required"}
    for name in (*FILES, "ssl_password"):
        if name in parameters:
            tls[name] = parameters.pop(name)
            # Processes of a server run in folders of their own.
            if name in FILES and not tls[name].startswith("/"):
                raise ValueError(f"its parameter {name} must be a whole path, from / on")
    for name, values in CHOICES.items():
        if name in parameters:
            value = parameters.pop(name)
            if value not in values:
                raise ValueError(f"its parameter {name} must be one of {', '.join(values)}")
            tls[name] = values[value]
    return tls


def _refuse_more(parameters: dict[str, str]) -> None:
    for name in parameters:
        if name.startswith("ssl_"):
            raise ValueError(f"its parameter {name} is not one of rediss://host/0, which knows {', '.join(KNOWN)}")
        raise ValueError(f"it has a parameter {name}, which is not one of {', '.join((*DATABASE, *KNOWN))}")


KNOWN = (*FILES, "ssl_password", *CHOICES)
