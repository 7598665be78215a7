from __future__ import annotations

from odradek.broker.replication.copied_records import SLICE_BATCHES, slices
from tests.support.logs import batch


def sizes(records: bytes, max_bytes: int) -> list[int]:
    return [len(part) for part in slices(memoryview(records), max_bytes)]


def test_slices_end_where_batches_end() -> None:
    one = bytes(batch(b"x" * 39))
    size = len(one)
    assert sizes(b"", 10) == []
    assert sizes(one * 4, 2 * size) == [2 * size, 2 * size]
    assert sizes(one * 4, 2 * size + 1) == [2 * size, 2 * size]
    assert sizes(one * 4, 2 * size - 1) == [size] * 4
    assert sizes(one * 2, 1) == [size, size], "a batch is not cut"
    assert sizes(one * 2 + one[:-1], 10 * size) == [2 * size], "a torn one is left"
    assert sizes(one[:16], 10) == []


def test_slices_have_a_limited_number_of_batches() -> None:
    one = bytes(batch(b"x"))
    assert sizes(one * SLICE_BATCHES, 10**9) == [SLICE_BATCHES * len(one)]
    assert sizes(one * (SLICE_BATCHES + 1), 10**9) == [SLICE_BATCHES * len(one), len(one)]
