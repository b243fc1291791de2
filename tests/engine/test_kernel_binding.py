"""The interface of the kernels: C++ that departs from it does not compile, and Python that does is refused."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from workers.engine.kernels.binding import Kernel
from workers.engine.kernels.build import compiler
from workers.engine.kernels.interface import Field, fields_of, kernels, record
from workers.engine.kernels.kernel import DTYPES, library
from workers.engine.kernels.levels import usable
from workers.engine.kernels.library import FLAGS, SOURCES

pytestmark = pytest.mark.usefixtures("native")
F32 = torch.float32


def compiles(folder: Path, source: str) -> bool:
    cxx = compiler()
    assert cxx
    command = [cxx, *FLAGS, *usable()[0].flags, "-fsyntax-only", str(folder / source)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("changed", "old", "new"),
    [
        pytest.param(
            "interface.h", "const float *weight;  // [size]", "const T *weight;", id="a type in the interface"
        ),
        pytest.param("interface.h", "float eps;", "", id="an argument that is gone"),
        pytest.param("interface.h", "KERNEL(rms_norm)", "KERNEL(norm)", id="a name in the interface"),
        pytest.param(
            "rms_norm.cpp", "rms_norm_arguments<T> &a", "rms_norm_arguments<T> &a, long more", id="an argument more"
        ),
        pytest.param(
            "rms_norm.cpp", "const rms_norm_arguments<T>", "const rotary_arguments<T>", id="another's arguments"
        ),
        pytest.param("rms_norm.cpp", "a.x_stride, a.weight", "a.weight, a.x_stride", id="arguments in another order"),
    ],
)
def test_a_source_that_departs_from_the_interface_does_not_compile(
    changed: str, old: str, new: str, tmp_path: Path
) -> None:
    for file in SOURCES.glob("*.h"):
        shutil.copy(file, tmp_path)
    shutil.copy(SOURCES / "rms_norm.cpp", tmp_path)
    assert compiles(tmp_path, "rms_norm.cpp")
    text = (tmp_path / changed).read_text()
    assert old in text
    (tmp_path / changed).write_text(text.replace(old, new))
    assert not compiles(tmp_path, "rms_norm.cpp")


def test_the_library_has_every_kernel_of_the_interface_in_both_dtypes() -> None:
    assert {"product", "attention_backward", "decoder_layers"} < kernels().keys()
    for name in kernels():
        for ending in DTYPES.values():
            assert library()[f"{name}_{ending}"]


def test_arguments_are_read_with_their_names_and_types() -> None:
    assert kernels()["dropout"] == (
        Field("x", "T", is_pointer=True, is_optional=False),
        Field("y", "T", is_pointer=True, is_optional=False),
        Field("samples", "int64_t", is_pointer=True, is_optional=False),
        Field("positions", "int64_t", is_pointer=True, is_optional=False),
        Field("rows", "long", is_pointer=False, is_optional=False),
        Field("columns", "long", is_pointer=False, is_optional=False),
        Field("key", "uint64_t", is_pointer=False, is_optional=False),
        Field("group", "uint32_t", is_pointer=False, is_optional=False),
        Field("least", "uint32_t", is_pointer=False, is_optional=False),
        Field("factor", "float", is_pointer=False, is_optional=False),
    )
    assert [field.name for field in kernels()["product"] if field.is_optional] == ["bias", "plus"]


def test_elements_of_arrays_lie_as_in_c() -> None:
    assert record("Choice") == np.dtype({"names": ["temperature", "top_k", "top_p", "uniform"], "formats": ["f8"] * 4})
    places = {name: offset for name, (_, offset, *_) in (record("AdapterRows").fields or {}).items()}
    assert places == {
        "start": 0, "stop": 8, "width": 16, "columns": 24, "b_inputs": 32, "a": 40, "b": 48, "firsts": 56,
    }  # fmt: skip


@pytest.mark.parametrize("declaration", ["std::vector<long> sizes", "long (*f)(long)", "bool", "long sizes[4]"])
def test_a_declaration_that_python_cannot_pass_is_refused(declaration: str) -> None:
    with pytest.raises(ValueError, match="pointers or scalars"):
        fields_of(declaration)


def normed(**changed: object) -> Tensor:
    """Three tokens of two heads, by rms_norm with one argument changed; None takes it away."""
    x, y = torch.ones(3, 2, 16), torch.empty(3, 2, 16)
    given = {"x": x, "weight": torch.ones(16), "eps": 0.0, "y": y, "length": 3, "heads": 2, "size": 16, **changed}
    arguments = {name: value for name, value in given.items() if value is not None}
    Kernel("rms_norm")(F32, **arguments)  # type: ignore[arg-type]
    return y


def test_a_call_gives_the_kernel_its_arguments_by_name() -> None:
    assert torch.equal(normed(), torch.ones(3, 2, 16))


def test_tokens_may_lie_apart_where_the_kernel_has_a_stride() -> None:
    assert torch.equal(normed(x=torch.full((3, 5, 16), 2.0)[:, 1:3]), torch.ones(3, 2, 16))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"eps": None}, "eps"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"x_stride": 32}, "x_stride"),
        ({"x": torch.ones(3, 2, 16, dtype=torch.bfloat16)}, "x is a tensor of torch.float32, not torch.bfloat16"),
        ({"weight": torch.ones(16, dtype=torch.float64)}, "weight is a tensor of torch.float32"),
        ({"weight": np.ones(16, np.float32)}, "weight is a tensor"),
        ({"weight": 0}, "weight is a tensor, not int"),
        ({"length": 3.0}, "length is a long, not float"),
        ({"eps": "0"}, "eps is a float, not str"),
    ],
)
def test_an_argument_of_another_name_kind_or_dtype_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        normed(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": torch.ones(3, 16, 2).mT}, "x .* is not contiguous"),
        ({"weight": torch.ones(32)[::2]}, "weight .* is not contiguous"),
        ({"x": torch.ones(3, 2, 16, device="meta")}, "x is not on a CPU"),
        ({"length": -1}, "length -1"),
        ({"heads": 1 << 64}, "heads 18446744073709551616"),
    ],
)
def test_an_argument_that_the_kernel_cannot_read_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normed(**changed)


@pytest.mark.parametrize(
    ("choices", "error"),
    [
        (torch.ones(1, 4, dtype=torch.float64), TypeError),
        (np.ones((1, 4)), TypeError),
        (np.ones(3, record("Choice"))[::2], ValueError),
        (None, TypeError),
    ],
)
def test_an_array_of_other_elements_is_refused(choices: object, error: type[Exception]) -> None:
    tokens, logprobs = torch.empty(1, dtype=torch.int64), torch.empty(1)
    arguments = {"logits": torch.ones(1, 8), "choices": choices, "tokens": tokens, "logprobs": logprobs}
    with pytest.raises(error, match="choices"):
        Kernel("draw")(F32, **arguments, rows=1, vocabulary=8)  # type: ignore[arg-type]
