"""Building and choosing the kernels. What they compute is tested where it is used."""

import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from domain.operation import ErrorCode, OperationFailedError
from tests.engine.configured_kernels import choose_configured
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine
from workers.engine.failures import as_failure
from workers.engine.kernels.build import build, compiler, main
from workers.engine.kernels.huge_pages import MOST_BYTES, HugePages
from workers.engine.kernels.kernel import choose, have_kernels
from workers.engine.kernels.levels import level_of
from workers.engine.kernels.library import kernels_folder, load
from workers.engine.kernels.panels import dense, panels, rows

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def chosen_again() -> Iterator[None]:
    yield
    choose_configured()


V3 = level_of("v3")


@pytest.fixture
def nothing_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "nothing"
    monkeypatch.setenv("CELERITY_KERNELS_DIR", str(folder))
    return folder


@pytest.fixture
def empty_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiler that is fast, since it compiles nothing."""
    script = tmp_path_factory.mktemp("compiler") / "c++"
    script.write_text(
        "#!/bin/sh\nfor word; do last=$word; done\n"
        'case $last in -dumpmachine) echo x86_64-linux-gnu;; *.so) echo | g++ -shared -x c++ - -o "$last";; esac\n'
    )
    script.chmod(0o755)
    return script


def test_native_kernels_serve_cpus_in_the_base_model_s_dtypes() -> None:
    choose("native")
    assert have_kernels(CPU, torch.float32) and have_kernels(CPU, torch.bfloat16)
    assert not have_kernels(CPU, torch.float64) and not have_kernels(torch.device("cuda"), torch.float32)


def test_one_may_do_without() -> None:
    choose("torch")
    assert not have_kernels(CPU, torch.float32)


@pytest.mark.usefixtures("nothing_built")
def test_where_no_kernels_were_built_torch_does_the_work_unless_one_insists() -> None:
    choose("auto")
    assert not have_kernels(CPU, torch.float32)
    with pytest.raises(ValueError, match="make setup"):
        Engine(EngineConfig(kernels="native"))


def test_a_start_compiles_nothing(nothing_built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a program was started"))
    choose("auto")
    assert not nothing_built.exists()


@pytest.mark.usefixtures("nothing_built")
def test_building_without_a_compiler_says_what_that_costs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    main([])
    (line,) = capsys.readouterr().out.splitlines()
    assert "no C++ compiler" in line and "twice as long" in line and "install g++" in line


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="auto, native, torch"):
        choose("fast")


def test_all_levels_of_the_compiler_s_machine_are_built_once(
    nothing_built: Path, empty_kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(empty_kernels))
    main(["all"])
    written = {file.name: file.stat().st_mtime_ns for file in nothing_built.iterdir()}
    assert {name.rpartition("-")[0] for name in written} == {
        f"kernels-{name}" for name in ("v3", "v4", "v4-bf16", "v4-amx")
    }
    main(["all"])
    assert {file.name: file.stat().st_mtime_ns for file in nothing_built.iterdir()} == written


def test_a_compiler_for_another_machine_makes_that_one_s_levels(
    nothing_built: Path, empty_kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_kernels.write_text(empty_kernels.read_text().replace("x86_64-linux-gnu", "aarch64-linux-gnu"))
    monkeypatch.setenv("CXX", str(empty_kernels))
    main(["all"])
    assert [file.name.rpartition("-")[0] for file in nothing_built.iterdir()] == ["kernels-neon"]


def test_a_compiler_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'no such header' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ValueError, match="no such header"):
        build(str(broken), V3, tmp_path / "kernels")
    assert not list((tmp_path / "kernels").iterdir())


def test_a_file_that_was_cut_short_is_built_again(tmp_path: Path, empty_kernels: Path) -> None:
    made = build(str(empty_kernels), V3, tmp_path / "kernels")
    whole = made.read_bytes()
    for size in (0, len(whole) // 2, len(whole) - 1):
        # Another file: the old one is mapped.
        made.unlink()
        made.write_bytes(whole[:size])
        build(str(empty_kernels), V3, tmp_path / "kernels")
        assert made.stat().st_size == len(whole)


def test_a_compiler_may_be_named_with_arguments(
    tmp_path: Path, empty_kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", f"{empty_kernels} -pipe")
    cxx = compiler()
    assert cxx and build(cxx, V3, tmp_path / "kernels").exists()


def test_a_folder_that_cannot_keep_the_kernels_is_refused_with_what_to_do(tmp_path: Path, empty_kernels: Path) -> None:
    (tmp_path / "file").write_text("a file, where a folder should be")
    with pytest.raises(ValueError, match="CELERITY_KERNELS_DIR"):
        build(str(empty_kernels), V3, tmp_path / "file")


def test_a_library_that_cannot_be_loaded_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "kernels.so").write_text("no library")
    with pytest.raises(ValueError, match="CELERITY_KERNELS_DIR"):
        load(tmp_path / "kernels.so")


def test_kernels_are_kept_in_the_user_s_cache_unless_a_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CELERITY_KERNELS_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for relative in ("", "here"):
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        assert kernels_folder() == tmp_path / ".cache" / "celerity"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert kernels_folder() == Path("/elsewhere/celerity")
    monkeypatch.setenv("CELERITY_KERNELS_DIR", "/opt/kernels")
    assert kernels_folder() == Path("/opt/kernels")


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "CELERITY_KERNELS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    with pytest.raises(ValueError, match="CELERITY_KERNELS_DIR"):
        kernels_folder()


def test_our_kernels_share_the_threads_of_torch() -> None:
    choose("native")
    maps = Path("/proc/self/maps").read_text().split()
    assert len({path for path in maps if "libgomp" in path or "libomp" in path or "libiomp" in path}) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("outputs", [1, 32, 70])
def test_panels_hold_the_matrix(outputs: int, dtype: torch.dtype) -> None:
    weight_OI = torch.randn(outputs, 6).to(dtype)
    packed = panels(weight_OI)
    assert torch.equal(dense(packed, outputs), weight_OI)
    some = torch.tensor([outputs - 1, 0])
    assert torch.equal(rows(packed, some), weight_OI[some])


def test_huge_pages_hold_copies_side_by_side() -> None:
    memory = HugePages()
    parts = [torch.randn(3, 5), torch.randn(7).bfloat16(), torch.randn(MOST_BYTES // 4), torch.randn(2, 2)]
    copies = [memory.copy(part) for part in parts]
    copies[0].mul_(2)
    assert torch.equal(copies[0], parts[0] * 2)
    assert all(torch.equal(copy, part) for copy, part in zip(copies[1:], parts[1:], strict=True))
    assert all(copy.data_ptr() % 64 == 0 for copy in copies)


def test_huge_pages_give_no_place_twice_to_threads_that_copy_at_once() -> None:
    memory = HugePages()
    with ThreadPoolExecutor(8) as threads:
        copies = list(threads.map(lambda number: memory.copy(torch.full((17,), number)), range(4000)))
    assert all(bool((copy == number).all()) for number, copy in enumerate(copies))


def test_pages_of_the_usual_size_do_where_the_system_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 9999)
    assert torch.equal(HugePages().copy(torch.arange(5)), torch.arange(5))


def test_pages_that_cannot_be_had_are_memory_that_ran_out() -> None:
    with pytest.raises(OSError, match="memory") as raised:
        HugePages().zeros((1 << 50,), torch.bfloat16)
    failure = as_failure(raised.value)
    assert isinstance(failure, OperationFailedError) and failure.error.code is ErrorCode.RESOURCE_EXHAUSTED
