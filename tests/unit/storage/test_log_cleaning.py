"""A compaction as a whole: segments in, `.cleaned` segments out."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.clean_job import CleanedGroup
from odradek.storage.file_records import CorruptLogError
from odradek.storage.log_cleaning import clean_log
from tests.support.compaction import BareLog
from tests.support.logs import NOW


def test_clean_segments(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    for number in range(30):
        log.write((b"k%d" % (number % 3), b"%02d" % number))
        if number % 5 == 4:
            log.roll()
    result = log.clean()
    assert result.next_dirty_offset == 30
    assert result.groups == [CleanedGroup((0, 5, 10, 15, 20, 25), 0)]
    assert log.keyed() == {27: (b"k0", b"27"), 28: (b"k1", b"28"), 29: (b"k2", b"29")}
    stats = result.stats
    assert (stats.messages_read, stats.map_messages_read, stats.messages_written, stats.map_entries) == (30, 30, 3, 3)
    assert stats.bytes_read == stats.map_bytes_read == 10 * stats.bytes_written
    assert stats.map_utilization == 3 / 1000


def test_a_worker_process_runs_it_with_its_own_clock(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"1"), (b"a", b"2"))
    log.roll()
    result = clean_log(log.job(), lambda _: None)
    assert result.groups == [CleanedGroup((0,), 0)]
    assert sorted(path.name for path in tmp_path.glob("*.cleaned")) == [
        "00000000000000000000.index.cleaned",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.cleaned",
    ]


def test_torn_batch_is_an_error(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"1"))
    log.roll()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptLogError, match="may be corrupt"):
        log.run(log.job())


def test_nothing_to_clean_changes_nothing(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"1"))
    result = log.clean(now_ms=NOW)
    assert (result.next_dirty_offset, result.groups) == (0, [])
