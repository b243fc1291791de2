"""Where the API listens, and whether that is only this host."""

import ipaddress
import socket


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_loopback(host: str) -> bool:
    """Whether every address that `host` stands for is reachable from this host alone.

    Raises:
        ValueError: the name stands for no address.
    """
    return all(ipaddress.ip_address(address).is_loopback for _, address in _resolve(host))


def check_free(host: str, port: int) -> None:
    """Raises ValueError when the port cannot be listened on."""
    for family, address in _resolve(host):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except (OSError, OverflowError) as error:
                reason = getattr(error, "strerror", None) or error
                raise ValueError(f"cannot listen on {in_url(host)}:{port} ({reason}): choose another PORT") from error


def in_url(host: str) -> str:
    """The host as it is written in a URL and in a bind address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _resolve(host: str) -> set[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"HOST {host!r} is not an address of this host: {error}") from error
    return {(family, str(address[0]).partition("%")[0]) for family, _, _, _, address in found}
