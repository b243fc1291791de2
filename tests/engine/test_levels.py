"""Which instruction level a processor has, and which of them is used."""

from pathlib import Path

import pytest

from workers.engine.kernels import levels
from workers.engine.kernels.levels import chosen, usable

ZEN3 = "fpu sse4_2 movbe f16c fma avx avx2 bmi1 bmi2 abm"
SKYLAKE_X = f"{ZEN3} avx512f avx512dq avx512cd avx512bw avx512vl"
ZEN4 = f"{SKYLAKE_X} avx512_bf16 avx512vbmi"
SAPPHIRE_RAPIDS = f"{ZEN4} amx_bf16 amx_tile amx_int8"
IVY_BRIDGE = "fpu sse4_2 f16c avx"


def put_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, features: str, machine: str = "x86_64") -> None:
    file = tmp_path / "cpuinfo"
    key = "Features" if machine == "aarch64" else "flags"
    file.write_text(f"processor\t: 0\nmodel name\t: any\n{key}\t\t: {features}\n\nprocessor\t: 1\n")
    monkeypatch.setattr(levels, "CPU_INFO", file)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.delenv("CELERITY_CPU_LEVEL", raising=False)
    monkeypatch.setattr(levels, "_grants_matrices", lambda: True)


@pytest.mark.parametrize(
    ("features", "machine", "names"),
    [
        (ZEN3, "x86_64", ["v3"]),
        (SKYLAKE_X, "x86_64", ["v3", "v4"]),
        (ZEN4, "x86_64", ["v3", "v4", "v4-bf16"]),
        (SAPPHIRE_RAPIDS, "x86_64", ["v3", "v4", "v4-bf16", "v4-amx"]),
        (ZEN4.replace("avx512vl ", ""), "x86_64", ["v3"]),
        (IVY_BRIDGE, "x86_64", []),
        ("fp asimd evtstrm aes", "aarch64", ["neon"]),
        (ZEN4, "riscv64", []),
    ],
)
def test_a_processor_has_the_levels_whose_instructions_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, features: str, machine: str, names: list[str]
) -> None:
    put_processor(monkeypatch, tmp_path, features, machine)
    assert [level.name for level in usable()] == names
    best = chosen()
    assert (best.name if best else None) == (names[-1] if names else None)


def test_matrices_that_the_system_does_not_grant_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_processor(monkeypatch, tmp_path, SAPPHIRE_RAPIDS)
    monkeypatch.setattr(levels, "_grants_matrices", lambda: False)
    assert usable()[-1].name == "v4-bf16"


def test_a_lower_level_may_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_processor(monkeypatch, tmp_path, ZEN4)
    monkeypatch.setenv("CELERITY_CPU_LEVEL", "v3")
    level = chosen()
    assert level and level.name == "v3" and level.flags == ("-march=x86-64-v3",)


def test_a_level_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_processor(monkeypatch, tmp_path, ZEN3)
    monkeypatch.setenv("CELERITY_CPU_LEVEL", "v4")
    with pytest.raises(ValueError, match=r"CELERITY_CPU_LEVEL v4 .* it has v3"):
        chosen()


def test_an_unknown_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERITY_CPU_LEVEL", "v5")
    with pytest.raises(ValueError, match=r"v5.*use auto or one of v3, v4, v4-bf16, v4-amx, neon"):
        chosen()


def test_where_nothing_tells_what_the_processor_has_there_is_no_level(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_processor(monkeypatch, tmp_path, ZEN4)
    monkeypatch.setattr(levels, "CPU_INFO", tmp_path / "none")
    assert usable() == ()
