import torch

from workers.engine.kv_cache import KvCache


def write(cache: KvCache, first_row: int, positions: list[list[int]], value: float) -> torch.Tensor:
    """Writes `value` for one head of size 1 in one layer; the values read, [rows, length]."""
    positions_BQ = torch.tensor(positions)
    cache.place(first_row, positions_BQ, int(positions_BQ.max()) + 1)
    new = torch.full((len(positions), 1, positions_BQ.shape[1], 1), value)
    return cache.update(new, new + 100, 0)[0][:, 0, :, 0]


def test_rows_write_at_positions_of_their_own() -> None:
    cache = KvCache()
    write(cache, 0, [[0, 1, 2]], 1.0)
    write(cache, 1, [[0]], 2.0)
    read = write(cache, 0, [[3], [1]], 3.0)
    assert read.tolist() == [[1, 1, 1, 3], [2, 3, 0, 0]]


def test_growing_keeps_what_is_held() -> None:
    cache = KvCache()
    write(cache, 0, [[0, 1]], 1.0)
    read = write(cache, 0, [[200]], 2.0)
    assert read[0].nonzero()[:, 0].tolist() == [0, 1, 200]
    assert read.shape == (1, 201)


def test_a_freed_row_leaves_nothing_behind_for_the_next() -> None:
    cache = KvCache()
    write(cache, 0, [[0, 1, 2], [0, 1, 2]], float("nan"))
    write(cache, 2, [[0]], 5.0)
    cache.remove_row(0, last=2)
    cache.remove_row(1, last=1)
    assert write(cache, 1, [[0]], 7.0).tolist() == [[7]]
    cache.place(0, torch.tensor([[2], [2]]), 3)
    ones = torch.ones(2, 1, 1, 1)
    assert cache.update(ones, ones, 0)[0][:, 0, :, 0].tolist() == [[5, 0, 1], [7, 0, 1]]


def test_a_copied_prefix_is_that_of_its_source() -> None:
    cache = KvCache()
    write(cache, 0, [[0, 1, 2]], 4.0)
    cache.reserve(2, 4)
    cache.copy_prefix(0, 1, 2)
    assert write(cache, 1, [[3]], 6.0).tolist() == [[4, 4, 0, 6]]


def test_bytes_are_counted_over_keys_and_values_of_all_layers() -> None:
    cache = KvCache()
    cache.place(0, torch.tensor([[0]]), 1)
    for layer in range(3):
        cache.update(torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 4), layer)
    assert cache.bytes_per_token == 3 * 2 * (8 + 4) * 4
    cache.clear()
    assert cache.capacity == (0, 0)
