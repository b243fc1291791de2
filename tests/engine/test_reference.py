"""What each instruction level computes: against plain formulas in double precision, and against the other levels.

The levels of this machine's processor run as they are, NEON under qemu where this machine is another.
"""

import pytest

from tests.engine.reference_program import Checked, checked, missing_tool
from workers.engine.kernels.levels import LEVELS, Level, level_of, usable

DTYPES = ("float32", "bfloat16")
KERNELS = (
    *("product", "transpose", "pack_adapter", "outer", "attention", "cached_attention"),
    *("rms_norm", "rotary", "swiglu", "dropout", "target_logprobs", "draw"),
)
# The others are to have the bits of the first.
FIRST, *OTHERS = (level for level in LEVELS if level in usable() or level is level_of("neon"))
# Those that have instructions for bf16 round pairs of products in another way.
WITH_BF16 = ("v4-bf16", "v4-amx")


def of_each(levels: list[Level]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("level", levels, ids=[level.name for level in levels])


def report(level: Level) -> tuple[Checked, ...]:
    if missing := missing_tool(level):
        pytest.skip(f"needs {missing}")
    return checked(level)


def digests(level: Level, dtype: str) -> dict[str, str]:
    return {one.kernel: one.digest for one in report(level) if one.dtype == dtype}


@of_each([FIRST, *OTHERS])
def test_a_level_computes_what_plain_formulas_say(level: Level) -> None:
    verdicts = {(one.kernel, one.dtype): one.is_right for one in report(level)}
    assert verdicts == {(kernel, dtype): True for kernel in KERNELS for dtype in DTYPES}


@of_each(OTHERS)
def test_a_level_gives_the_bits_of_the_others_in_fp32(level: Level) -> None:
    assert digests(level, "float32") == digests(FIRST, "float32")


@of_each([level for level in OTHERS if level.name not in WITH_BF16])
def test_levels_without_instructions_for_bf16_give_the_same_bits_in_bf16(level: Level) -> None:
    assert digests(level, "bfloat16") == digests(FIRST, "bfloat16")
