"""Where the embedded server listens: a socket that its owner alone can reach, and no port."""

from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

NAME = "valkey.sock"
# What every system takes of a socket's path: Linux has room for 107 bytes, macOS for 103.
MOST_BYTES = 103


class UnixSocket:
    """In Valkey's folder, or where that path would be too long, in a folder of its own for temporary files."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError when that is too long as well."""
        self._temporary: TemporaryDirectory[str] | None = None
        self.path = folder / NAME
        if _is_too_long(self.path):
            self._temporary = TemporaryDirectory(prefix="celerity-")
            self.path = Path(self._temporary.name) / NAME
        if _is_too_long(self.path):
            self.remove()
            raise ValueError(f"{self.path} is too long for a socket: choose a shorter DATA_DIR or TMPDIR")

    @property
    def url(self) -> str:
        """As CELERITY_REDIS_URL has it."""
        return f"unix://{quote(str(self.path))}?db=0"

    def remove(self) -> None:
        """Once the server has ended, which removes the socket itself."""
        if self._temporary is not None:
            self._temporary.cleanup()


def _is_too_long(path: Path) -> bool:
    return len(str(path).encode()) > MOST_BYTES
