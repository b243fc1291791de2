"""What to run, read from the environment and checked before anything starts."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from settings import Settings, load_settings
from stack.address import check_free, in_url, is_loopback

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One stack: where it listens, with how many workers, and the environment of its processes."""

    environment: Mapping[str, str]
    settings: Settings
    host: str
    port: int
    workers: int

    @property
    def url(self) -> str:
        """Where a client on this host reaches the API."""
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{in_url(reachable)}:{self.port}"

    @property
    def bind(self) -> str:
        return f"{in_url(self.host)}:{self.port}"

    @property
    def embeds_valkey(self) -> bool:
        """Whether the stack brings its own server; a user's CELERITY_REDIS_URL names another."""
        return not self.environment.get("CELERITY_REDIS_URL")

    def with_redis(self, url: str) -> "Plan":
        """The same plan on the server at `url`."""
        return dataclasses.replace(self, environment={**self.environment, "CELERITY_REDIS_URL": url})


def read_plan(environment: Mapping[str, str], *, workers: int = 1) -> Plan:
    """The plan that HOST, PORT, DATA_DIR and the CELERITY_ settings ask for.

    Raises:
        ValueError: a setting is wrong, the port is taken, or an API without keys would be open to others.
    """
    settings = load_settings(environment)
    host, port = environment.get("HOST") or DEFAULT_HOST, _port(environment.get("PORT") or str(DEFAULT_PORT))
    if workers < 1:
        raise ValueError("a stack needs at least one worker")
    if not settings.api_keys and not is_loopback(host):
        raise ValueError(f"HOST {host} can be reached from other hosts: set CELERITY_API_KEYS first")
    check_free(host, port)
    # Processes of the stack run in the checkout's folder, so paths must not depend on the caller's.
    paths = {"DATA_DIR": str(settings.data_dir.resolve())}
    if settings.models_dir is not None:
        paths["CELERITY_MODELS_DIR"] = str(settings.models_dir.resolve())
    return Plan(environment={**environment, **paths}, settings=settings, host=host, port=port, workers=workers)


def _port(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise ValueError(f"PORT must be a number from 1 to 65535, not {text!r}")
    return int(text)
