import torch

from workers.engine.backends.kv_cache import KvCache


def write(cache: KvCache, row: int, positions: list[int], value: float) -> torch.Tensor:
    """Writes `value` for one head of size 1 in one layer; the row's keys up to the last position."""
    length = max(positions) + 1
    cache.reserve(row + 1, length)
    new = torch.full((len(positions), 1, 1), value)
    cache.write(0, torch.full((len(positions),), row), torch.tensor(positions), new, new + 100)
    keys, values = cache.read(0, slice(row, row + 1), length)
    torch.testing.assert_close(values[0, 0, positions], keys[0, 0, positions] + 100, equal_nan=True)
    return keys[0, 0, :, 0]


def test_rows_write_at_positions_of_their_own() -> None:
    cache = KvCache()
    write(cache, 0, [0, 1, 2], 1.0)
    write(cache, 1, [0], 2.0)
    new = torch.full((2, 1, 1), 3.0)
    cache.reserve(2, 4)
    cache.write(0, torch.tensor([1, 0]), torch.tensor([1, 3]), new, new)
    assert cache.read(0, slice(0, 2), 4)[0][:, 0, :, 0].tolist() == [[1, 1, 1, 3], [2, 3, 0, 0]]


def test_growing_keeps_what_is_held() -> None:
    cache = KvCache()
    write(cache, 0, [0, 1], 1.0)
    read = write(cache, 0, [200], 2.0)
    assert read.nonzero()[:, 0].tolist() == [0, 1, 200]
    assert len(read) == 201


def test_a_freed_row_leaves_nothing_behind_for_the_next() -> None:
    cache = KvCache()
    for row in (0, 1):
        write(cache, row, [0, 1, 2], float("nan"))
    write(cache, 2, [0], 5.0)
    cache.remove_row(0, last=2)
    cache.remove_row(1, last=1)
    assert write(cache, 1, [0], 7.0).tolist() == [7]
    assert write(cache, 0, [2], 1.0).tolist() == [5, 0, 1]
    assert write(cache, 1, [2], 1.0).tolist() == [7, 0, 1]


def test_a_copied_prefix_is_that_of_its_source() -> None:
    cache = KvCache()
    write(cache, 0, [0, 1, 2], 4.0)
    cache.reserve(2, 4)
    cache.copy_prefix(0, 1, 2)
    assert write(cache, 1, [3], 6.0).tolist() == [4, 4, 0, 6]


def test_bytes_are_counted_over_keys_and_values_of_all_layers() -> None:
    cache = KvCache()
    cache.reserve(1, 1)
    zero = torch.tensor([0])
    for layer in range(3):
        cache.write(layer, zero, zero, torch.zeros(1, 2, 8), torch.zeros(1, 2, 4))
    assert cache.bytes_per_token == 3 * 2 * (8 + 4) * 4
    cache.clear()
    assert cache.capacity == (0, 0)
