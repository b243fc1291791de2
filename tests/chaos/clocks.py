"""Wall clocks of single processes that are wrong, and jump."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_offset.c")


class Clocks:
    """One for each process that is started in `environment(name)`; right at first."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._library = folder / "clock_offset.so"
        compiler = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE)]
        subprocess.run(compiler, check=True)
        self._files = {name: folder / f"{name}.clock" for name in names}
        for file in self._files.values():
            file.write_bytes(bytes(8))

    def environment(self, name: str) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET_FILE": str(self._files[name])}

    def set(self, name: str, offset: int) -> None:
        """How many seconds the clock is fast from now on."""
        with self._files[name].open("r+b") as file:
            file.write(offset.to_bytes(8, "little", signed=True))
