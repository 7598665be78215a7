from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.replication.copied_records import SLICE_BATCHES, append_copied, slices
from odradek.storage.append_info import UnexpectedAppendOffsetError
from tests.support.disks.logs import Disk, append, batch


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


@pytest.mark.parametrize(
    ("start", "end", "first", "begins_anew"),
    [(5, 5, 4, True), (5, 5, 3, False), (4, 5, 4, False)],
    ids=["the start lies inside the batch", "the batch ends below the start", "there are records already"],
)
def test_a_copy_restarts_only_at_a_batch_that_contains_its_start(
    tmp_path: Path, start: int, end: int, first: int, begins_anew: bool
) -> None:
    log = Disk(tmp_path).log()
    log.truncate_fully_and_start_at(start)
    for _ in range(end - start):
        append(log, b"x")
    records = batch(b"a", b"b", base_offset=first)
    begun: list[int] = []

    def begin_at(offset: int) -> None:
        begun.append(offset)
        log.truncate_fully_and_start_at(offset)

    if begins_anew:
        append_copied(log, records, begin_at)
        assert (begun, log.log_end_offset) == ([first], first + 2)
    else:
        with pytest.raises(UnexpectedAppendOffsetError):
            append_copied(log, records, begin_at)
        assert (begun, log.log_end_offset) == ([], end)
