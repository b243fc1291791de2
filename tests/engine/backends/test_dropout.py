"""Dropout masks, and the numbers that they are made of."""

import pytest
import torch
from torch import Tensor

from tests.engine.backend import backend_of
from workers.engine.adapters.dropout import Dropout
from workers.engine.backends.choice import NATIVE, TORCH
from workers.engine.backends.torch.dropout import philox

ALL_BITS = 0xFFFFFFFF


def mask(dropout: Dropout, group: int, rows: int, columns: int = 40) -> Tensor:
    return backend_of().dropout(torch.ones(rows, columns), dropout, group)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0, 0, 0, 0], 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ALL_BITS] * 4, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            0x299F31D0A4093822,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_numbers_that_its_authors_published(counter: list[int], key: int, expected: list[int]) -> None:
    assert [int(number) for number in philox([torch.tensor(part) for part in counter], key)] == expected


@pytest.mark.usefixtures("kernels")
def test_masks_follow_the_sample_not_the_pass() -> None:
    together = mask(Dropout(0.25, 9, [3, 5], [50, 30]), 2, 80)
    alone = mask(Dropout(0.25, 9, [5], [30]), 2, 30)
    assert torch.equal(together[50:], alone)
    assert not torch.equal(together[:30], together[50:])
    for other in (mask(Dropout(0.25, 8, [5], [30]), 2, 30), mask(Dropout(0.25, 9, [5], [30]), 1, 30)):
        assert not torch.equal(other, alone)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("probability", [0.05, 0.5, 0.9])
def test_as_many_numbers_drop_as_should_and_the_others_make_up_for_them(probability: float) -> None:
    kept = mask(Dropout(probability, 1, [0], [500]), 0, 500, 200)
    assert sorted(set(kept.flatten().tolist())) == pytest.approx([0.0, 1 / (1 - probability)])
    spread = (probability * (1 - probability) / kept.numel()) ** 0.5
    assert (kept == 0).double().mean().item() == pytest.approx(probability, abs=4 * spread)
    # No row and no column is another's copy.
    assert len({tuple(row) for row in kept.tolist()}) == 500
    assert len({tuple(column) for column in kept.T.tolist()}) == 200


@pytest.mark.parametrize("probability", [1e-12, 1 - 1e-12])
@pytest.mark.usefixtures("kernels")
def test_probabilities_beside_0_and_1_are_not_mistaken_for_each_other(probability: float) -> None:
    assert mask(Dropout(probability, 1, [0], [100]), 0, 100).bool().all().item() == (probability < 0.5)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [8, 32, 40, 64, 100, 576])
def test_with_and_without_kernels_the_same_numbers_are_kept(dtype: torch.dtype, columns: int) -> None:
    x = torch.randn(150, columns, generator=torch.Generator().manual_seed(0)).to(dtype)
    dropout = Dropout(0.3, 2**63 + 5, [0, 1, 4_000_000_000], [1, 99, 50])
    kept = [backend.dropout(x, dropout, 7) for backend in (NATIVE, TORCH)]
    assert torch.equal(*kept)
    is_kept = kept[0] != 0
    torch.testing.assert_close(kept[0][is_kept], x[is_kept] / 0.7, rtol=torch.finfo(dtype).eps, atol=0)
