"""The tensors of a model directory, from the headers of its safetensors files alone."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from safetensors import SafetensorError, safe_open

from models.files import is_file, refuse_outside
from models.json_file import MOST_BYTES, POINTER, read_object, refuse_pointer

WEIGHTS = "model.safetensors"
INDEX = WEIGHTS + ".index.json"
# What a plain model is stored in; the others need scales, or a quantizer's code.
DTYPES = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}
FETCH_AGAIN = "copy or download it again"
MOST_NAMED = 3


class StoredTensor(NamedTuple):
    shape: tuple[int, ...]
    dtype: str


def read_tensors(directory: Path) -> dict[str, StoredTensor]:
    """Every tensor that transformers would read, by name.

    Raises:
        ValueError: a file is missing, is not what it should be or is cut short, or the index and the files differ.
    """
    if (directory / WEIGHTS).is_file():
        return _headers([directory / WEIGHTS])
    places = _places(directory)
    tensors = _headers([directory / file for file in sorted(set(places.values()))])
    lacking = sorted(set(places) - set(tensors))
    if lacking:
        raise ValueError(f"{INDEX} names tensors that its files do not hold: {listed(lacking)}; {FETCH_AGAIN}")
    return tensors


def listed(names: Iterable[str]) -> str:
    """The first few, and how many more."""
    first, more = (found := list(names))[:MOST_NAMED], len(found) - MOST_NAMED
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _places(directory: Path) -> Mapping[str, str]:
    """From tensors to files, as the index has it."""
    if not (directory / INDEX).is_file():
        raise ValueError(f"there is neither {WEIGHTS} nor {INDEX}; save the model with save_pretrained")
    index = read_object(directory / INDEX)
    places = index.get("weight_map")
    if not isinstance(index.get("metadata"), dict) or not isinstance(places, dict) or not places:
        raise ValueError(f"{INDEX} has no metadata or no weight_map; {FETCH_AGAIN}")
    _check_names(directory, places.values())
    return places


def _check_names(directory: Path, files: Iterable[object]) -> None:
    # JSON may have lists and objects there, which no set takes.
    strange = {repr(file)[:100] for file in files if not (isinstance(file, str) and _is_inside(file))}
    if strange:
        raise ValueError(f"{INDEX} names files that are no safetensors files of this folder: {listed(sorted(strange))}")
    names = sorted({str(file) for file in files})
    missing = [name[:100] for name in names if not is_file(directory / name)]
    if missing:
        raise ValueError(f"{INDEX} names files that are missing: {listed(missing)}; copy or download them")
    for name in names:
        refuse_outside(directory, directory / name)


def _is_inside(file: str) -> bool:
    path = PurePosixPath(file)
    return file.endswith(".safetensors") and not path.is_absolute() and ".." not in path.parts and "\0" not in file


def _headers(files: list[Path]) -> dict[str, StoredTensor]:
    """Of all files, which are looked at one after the other: their headers are bounded together."""
    left, tensors = MOST_BYTES, dict[str, StoredTensor]()
    for file in files:
        left -= _header_size(file)
        if left < 0:
            raise ValueError(f"{file.name}: the headers of the weights have more than {MOST_BYTES} bytes")
        tensors.update(_header(file))
    return tensors


def _header_size(file: Path) -> int:
    """As the file states it, at its beginning."""
    try:
        with file.open("rb") as opened:
            beginning = opened.read(len(POINTER))
            size, length = int.from_bytes(beginning[:8], "little"), os.fstat(opened.fileno()).st_size
    except OSError as error:
        raise _unreadable(file, error) from error
    refuse_pointer(file.name, beginning)
    # What says that it is longer than its file is no header: its library says so.
    return size if size <= length else 0


def _header(file: Path) -> Iterator[tuple[str, StoredTensor]]:
    try:
        with safe_open(file, framework="numpy") as opened:
            for name in opened.keys():  # noqa: SIM118 - not a dict
                part = opened.get_slice(name)
                yield name, _plain(StoredTensor(tuple(part.get_shape()), part.get_dtype()), name, file)
    except OSError as error:
        raise _unreadable(file, error) from error
    except SafetensorError as error:
        size = file.stat().st_size
        raise ValueError(
            f"{file.name} ({size} bytes) was cut short or is no safetensors file ({error}); {FETCH_AGAIN}"
        ) from error


def _unreadable(file: Path, error: OSError) -> ValueError:
    return ValueError(f"{file.name} cannot be read: {error.strerror or error}")


def _plain(tensor: StoredTensor, name: str, file: Path) -> StoredTensor:
    if tensor.dtype not in DTYPES:
        raise ValueError(f"{file.name} holds {name} as {tensor.dtype}: serve a model that is not quantized")
    return tensor
