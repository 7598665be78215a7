"""Truncation of a log with transactions on a follower: the open, unstable and aborted ones afterwards.

The log: a transaction of producer 1 that is aborted over two segments, one of producer 2 that is committed, and one of
producer 3 that is open.

    0 1-a   1 2-b   2 1-c  |  3 ABORT 1   4 2-d   5 COMMIT 2  |  6 3-e   7 plain
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.records.control import ControlRecordType
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.disks.logs import Disk, batch, crash_copy, marker

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
COMMITTED = FetchIsolation.TXN_COMMITTED
ABORTED = AbortedTxn(1, 0, 3, 1)


def data(offset: int, producer_id: int, sequence: int) -> memoryview:
    return batch(
        b"v",
        base_offset=offset,
        epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


SEGMENTS = (
    (data(0, 1, 0), data(1, 2, 0), data(2, 1, 1)),
    (
        marker(ABORT, producer_id=1, base_offset=3, epoch=0),
        data(4, 2, 1),
        marker(COMMIT, producer_id=2, base_offset=5, epoch=0),
    ),
    (data(6, 3, 0), batch(b"plain", base_offset=7, epoch=0)),
)


def replicate(log: UnifiedLog) -> None:
    """Send the records that an empty or truncated follower lacks."""
    for number, segment in enumerate(SEGMENTS):
        base_offset = (0, 3, 6)[number]
        if number and base_offset not in log.segments and base_offset == log.log_end_offset:
            log.roll()
        for at, each in enumerate(segment):
            if base_offset + at >= log.log_end_offset:
                log.append_as_follower(memoryview(bytearray(each)))


def aborted(log: UnifiedLog) -> list[AbortedTxn]:
    return [txn for segment in log.segments for txn in segment.txn_index]


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    log = Disk(tmp_path / "live").log()
    replicate(log)
    return log


@pytest.mark.parametrize(
    ("cut", "first_open", "first_unstable", "entries"),
    [
        (8, 6, 0, [ABORTED]),
        (7, 6, 6, [ABORTED]),  # from the snapshot at 6, which has no completed transactions
        (6, None, None, [ABORTED]),
        (5, 1, 0, [ABORTED]),  # the second is open again
        (4, 1, 0, [ABORTED]),
        (3, 0, 0, []),  # and the first
        (2, 0, 0, []),
        (1, 0, 0, []),
        (0, None, None, []),
    ],
)
def test_transactions_below_the_cut(
    log: UnifiedLog, cut: int, first_open: int | None, first_unstable: int | None, entries: list[AbortedTxn]
) -> None:
    """The high watermark is still 0, so that completed transactions are unstable."""
    log.truncate_to(cut)
    assert log.state.producers.first_undecided_offset == first_open
    assert log.first_unstable_offset == first_unstable
    assert aborted(log) == entries


@pytest.mark.parametrize("cut", range(8))
@pytest.mark.parametrize("is_killed", [False, True])
def test_it_is_as_if_never_cut_when_the_same_comes_again(
    log: UnifiedLog, tmp_path: Path, cut: int, is_killed: bool
) -> None:
    log.truncate_to(cut)
    if is_killed:
        crash_copy(tmp_path / "live", tmp_path / "killed")
        log.discard()
        log = Disk(tmp_path / "killed").log()
    replicate(log)
    assert aborted(log) == [ABORTED]
    log.update_high_watermark(log.log_end_offset)
    assert (log.first_unstable_offset, log.last_stable_offset) == (6, 6)
    assert log.read(0, 10_000, COMMITTED, True).aborted_transactions == [ABORTED]


@pytest.mark.parametrize(
    ("high_watermark", "last_stable"),
    [(0, 0), (1, 0), (3, 0), (4, 1), (5, 1), (6, 6), (7, 6), (8, 6)],
)
def test_markers_above_the_high_watermark_of_a_follower_decide_nothing(
    log: UnifiedLog, high_watermark: int, last_stable: int
) -> None:
    assert log.update_high_watermark(high_watermark) == high_watermark
    assert log.last_stable_offset == last_stable


def test_begin_of_a_transaction_is_known_by_its_offset_only(tmp_path: Path) -> None:
    """After a start from a snapshot, its file position is unknown; a truncation below it works all the same."""
    log = Disk(tmp_path).log()
    log.append_as_follower(batch(b"0", b"1", b"2", epoch=0))
    log.append_as_follower(memoryview(bytearray(data(3, 17, 0))))
    log.close()
    again = Disk(tmp_path).log(clean=True)
    assert again.state.producers.first_unstable_offset == (3, -1, -1)
    again.update_high_watermark(4)
    assert again.last_stable_offset == 3
    again.truncate_to(0)
    assert (again.first_unstable_offset, dict(again.active_producers())) == (None, {})


def test_log_that_starts_elsewhere_has_no_transactions(log: UnifiedLog) -> None:
    log.truncate_fully_and_start_at(29)
    assert (log.first_unstable_offset, dict(log.active_producers())) == (None, {})
    assert (log.state.producers.map_end_offset, log.state.producers.latest_snapshot_offset) == (29, None)
    assert aborted(log) == []
