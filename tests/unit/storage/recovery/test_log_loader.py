"""Loading a log: after a clean stop, after a kill, after an interrupted compaction."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.compaction.compaction import BareLog
from tests.support.disks.logs import NOW, Disk, append, batch, crash_copy, marker, read_all, values_of

SIZE = len(batch(b"00"))
SEGMENTS_OF_TWO = {"segment.bytes": str(2 * SIZE), "index.interval.bytes": "0"}


def fill(disk: Disk, count: int = 6, overrides: dict[str, str] | None = None) -> UnifiedLog:
    log = disk.log(overrides or SEGMENTS_OF_TWO)
    for number in range(count):
        append(log, b"%02d" % number, timestamp=NOW + number, epoch=number // 2)
    return log


def directory(disk: Disk) -> Path:
    return disk.path / "topic-0"


def names(disk: Disk, suffix: str = "") -> list[str]:
    return sorted(path.name for path in directory(disk).iterdir() if path.name.endswith(suffix))


def reopened(disk: Disk, *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0) -> UnifiedLog:
    return Disk(disk.path).log(
        SEGMENTS_OF_TWO, clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset
    )


def numbers(log: UnifiedLog) -> list[int]:
    return [int(value or b"") for value in values_of(read_all(log))]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "live")


@pytest.fixture
def killed(disk: Disk, tmp_path: Path) -> Disk:
    """A copy of a live directory of six records in three segments."""
    fill(disk)
    crash_copy(disk.path, tmp_path / "killed")
    return Disk(tmp_path / "killed")


def test_index_files_of_a_killed_log_are_rebuilt(killed: Disk) -> None:
    active_index = directory(killed) / "00000000000000000004.index"
    assert active_index.stat().st_size == 4096, "preallocated"
    log = reopened(killed, recovery_point=4)
    assert numbers(log) == list(range(6))
    assert active_index.stat().st_size == 8
    assert log.recovery_point == 4
    assert [tuple(entry) for entry in log.state.leader_epochs.entries] == [(0, 0), (1, 2), (2, 4)]


def test_segments_below_the_recovery_point_are_not_scanned(killed: Disk) -> None:
    first = directory(killed) / "00000000000000000000.log"
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    assert reopened(killed, recovery_point=2).log_end_offset == 6


def test_bad_batch_cuts_the_log_there_and_removes_what_follows(killed: Disk) -> None:
    middle = directory(killed) / "00000000000000000002.log"
    data = bytearray(middle.read_bytes())
    data[SIZE + 30] ^= 1
    middle.write_bytes(data)
    log = reopened(killed)
    assert numbers(log) == [0, 1, 2]
    assert log.segments.base_offsets == [0, 2]
    assert log.latest_epoch == 1
    assert "00000000000000000004.log.deleted" in names(killed)
    assert append(log, b"33") == 3


@pytest.mark.parametrize(
    ("policy", "recovery_point", "first_dirty_offset", "left"),
    [
        ("delete", 3, 0, [0, 1]),
        ("delete", 3, 2, [0, 1]),
        ("delete", 4, 0, [0, 1, 4, 5]),
        ("compact", 3, 0, [0, 1, 4, 5]),
        ("delete", 0, 3, [0, 1, 4, 5]),
    ],
    ids=["the power took it", "it was dirty", "it was flushed so", "it is compacted", "it was compacted before"],
)
def test_segments_after_one_that_lost_all_records_are_removed(
    killed: Disk, policy: str, recovery_point: int, first_dirty_offset: int, left: list[int]
) -> None:
    directory(killed).joinpath("00000000000000000002.log").write_bytes(b"")
    log = Disk(killed.path).log(
        {**SEGMENTS_OF_TWO, "cleanup.policy": policy},
        recovery_point=recovery_point,
        first_dirty_offset=first_dirty_offset,
    )
    assert [record.offset for record in read_all(log)] == left
    assert ("00000000000000000004.log.deleted" in names(killed)) == (4 not in left)
    assert log.log_end_offset == (6 if 4 in left else 2)
    assert log.latest_epoch == (2 if 4 in left else 0)


def test_bytes_of_a_torn_write_are_cut(killed: Disk) -> None:
    last = directory(killed) / "00000000000000000004.log"
    with last.open("ab") as file:
        file.write(bytes(batch(b"77", base_offset=6))[:-3])
    log = reopened(killed, recovery_point=4)
    assert numbers(log) == list(range(6))
    assert last.stat().st_size == 2 * SIZE


def test_preallocated_zeros_are_cut(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "live")
    overrides = {**SEGMENTS_OF_TWO, "preallocate": "true"}
    fill(disk, 1, overrides)
    crash_copy(disk.path, tmp_path / "killed")
    log = Disk(tmp_path / "killed").log(overrides)
    assert numbers(log) == [0]
    assert log.segments.active.size == SIZE


def test_index_out_of_order_empties_the_segment(killed: Disk) -> None:
    last = directory(killed) / "00000000000000000004.log"
    last.write_bytes(b"".join(bytes(batch(b"00", base_offset=offset)) for offset in (4, 5, 5, 6)))
    log = reopened(killed, recovery_point=4)
    assert numbers(log) == [0, 1, 2, 3]
    assert log.log_end_offset == 4


def test_missing_indexes_are_rebuilt_even_after_a_clean_stop(disk: Disk) -> None:
    fill(disk).close()
    directory(disk).joinpath("00000000000000000002.index").unlink()
    directory(disk).joinpath("00000000000000000004.timeindex").unlink()
    log = reopened(disk, clean=True)
    assert numbers(log) == list(range(6))
    assert directory(disk).joinpath("00000000000000000002.index").stat().st_size == 8
    assert directory(disk).joinpath("00000000000000000004.timeindex").exists()


def test_clean_stop_trusts_the_indexes(disk: Disk) -> None:
    fill(disk).close()
    before = {name: (directory(disk) / name).stat().st_mtime_ns for name in names(disk)}
    reopened(disk, clean=True)
    assert {name: (directory(disk) / name).stat().st_mtime_ns for name in names(disk)} == before


def test_clean_stop_without_any_snapshot_means_empty_producer_state(disk: Disk) -> None:
    log = disk.log()
    append(log, b"1", producer_id=4, producer_epoch=0, base_sequence=0)
    log.close()
    for snapshot in directory(disk).glob("*.snapshot"):
        snapshot.unlink()
    assert not disk.log(clean=True).active_producers()


def test_producers_are_replayed_from_the_newest_snapshot(disk: Disk, tmp_path: Path) -> None:
    log = disk.log()
    append(log, b"1", producer_id=4, producer_epoch=0, base_sequence=0)
    log.roll()
    append(log, b"2", producer_id=4, producer_epoch=0, base_sequence=1)
    append(log, b"3", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    crash_copy(disk.path, tmp_path / "killed")
    again = Disk(tmp_path / "killed").log(recovery_point=1)
    assert {pid: entry.last_seq for pid, entry in again.active_producers().items()} == {4: 1, 5: 0}
    assert again.first_unstable_offset == 2
    info = again.append_as_leader(batch(b"2", producer_id=4, producer_epoch=0, base_sequence=1), 0)
    assert (info.duplicate, info.first_offset) == (True, 1)


def test_aborted_transactions_are_indexed_again(disk: Disk, tmp_path: Path) -> None:
    log = disk.log()
    append(log, b"1", producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True)
    abort = marker(ControlRecordType.ABORT, producer_id=4)
    log.append_as_leader(abort, 0, origin=AppendOrigin.COORDINATOR)
    crash_copy(disk.path, tmp_path / "killed")
    next((tmp_path / "killed" / "topic-0").glob("*.txnindex")).unlink()
    again = Disk(tmp_path / "killed").log()
    again.update_high_watermark(2)
    found = again.read(0, 1000, FetchIsolation.TXN_COMMITTED, True)
    assert found.aborted_transactions == [AbortedTxn(4, 0, 1, 2)]


def test_log_end_below_the_log_start_means_a_new_log(disk: Disk) -> None:
    fill(disk).close()
    log = reopened(disk, clean=True, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (50, 50, [50])
    assert log.latest_epoch == -1


def test_log_start_inside_a_segment(disk: Disk) -> None:
    fill(disk).close()
    log = reopened(disk, clean=True, log_start_offset=3)
    assert (log.log_start_offset, log.segments.base_offsets) == (3, [0, 2, 4])
    assert [tuple(entry) for entry in log.state.leader_epochs.entries] == [(1, 3), (2, 4)]
    assert numbers(log) == [3, 4, 5]


def test_log_start_before_the_first_segment(disk: Disk) -> None:
    fill(disk).close()
    for path in directory(disk).glob("00000000000000000000.*"):
        path.unlink()
    assert reopened(disk, clean=True).log_start_offset == 2


def test_a_time_index_that_went_with_the_power_is_rebuilt_below_the_recovery_point(killed: Disk) -> None:
    directory(killed).joinpath("00000000000000000000.timeindex").unlink()
    log = reopened(killed, recovery_point=4)
    assert log.segments.first.time_index.entries
    found = log.fetch_offset_by_timestamp(NOW + 2)
    assert found is not None
    assert found.offset == 2


def test_orphaned_indexes_and_old_deletions_go(disk: Disk) -> None:
    fill(disk).close()
    for name in ("00000000000000000009.index", "00000000000000000009.txnindex", "00000000000000000001.log.deleted"):
        (directory(disk) / name).touch()
    (directory(disk) / "unrelated").touch()
    reopened(disk, clean=True)
    assert not [name for name in names(disk) if name.startswith("00000000000000000009") or name.endswith("deleted")]
    assert "unrelated" in names(disk)


def compacted_copy(disk: Disk, suffix: str) -> None:
    """Write a compacted segment of the records 1 and 3 from the segments 0 and 2."""
    base = directory(disk) / "00000000000000000000"
    kept = [batch(b"01", base_offset=1, epoch=0), batch(b"03", base_offset=3, epoch=1)]
    base.with_suffix(f".log{suffix}").write_bytes(b"".join(map(bytes, kept)))
    for index in (".index", ".timeindex"):
        base.with_suffix(f"{index}{suffix}").touch()


def test_swap_is_finished(disk: Disk) -> None:
    fill(disk).close()
    compacted_copy(disk, ".swap")
    log = reopened(disk, clean=True)
    assert numbers(log) == [1, 3, 4, 5]
    assert log.segments.base_offsets == [0, 4]
    assert not names(disk, ".swap")


def test_unfinished_compaction_is_forgotten(disk: Disk) -> None:
    fill(disk).close()
    compacted_copy(disk, ".cleaned")
    assert numbers(reopened(disk, clean=True)) == list(range(6))
    assert not names(disk, ".cleaned")


def test_swap_files_at_or_above_a_cleaned_one_are_not_complete(disk: Disk) -> None:
    fill(disk).close()
    compacted_copy(disk, ".cleaned")
    for suffix in (".log", ".index", ".timeindex"):
        source = directory(disk) / f"00000000000000000004{suffix}"
        shutil.copy(source, directory(disk) / f"00000000000000000004{suffix}.swap")
    assert numbers(reopened(disk, clean=True)) == list(range(6))
    assert not names(disk, ".swap")


def test_swap_interrupted_between_its_renames(disk: Disk) -> None:
    """The log file has its plain name again, its indexes do not."""
    fill(disk).close()
    compacted_copy(disk, ".swap")
    for path in directory(disk).glob("0000000000000000000[02].*"):
        if not path.name.endswith((".swap", ".snapshot")):
            path.unlink()
    swapped = directory(disk) / "00000000000000000000.log.swap"
    swapped.rename(swapped.with_suffix(""))
    assert numbers(reopened(disk, clean=True)) == [1, 3, 4, 5]


def test_damaged_epoch_file_is_filled_from_the_batches(killed: Disk) -> None:
    (directory(killed) / "leader-epoch-checkpoint").write_text("rubbish")
    log = reopened(killed)
    assert [tuple(entry) for entry in log.state.leader_epochs.entries] == [(0, 0), (1, 2), (2, 4)]
    log.log_dir.sync_queue.when_durable(lambda _: None)
    assert (directory(killed) / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n1 2\n2 4\n"


def test_recovery_of_a_recovered_log_changes_nothing(killed: Disk) -> None:
    reopened(killed).close()
    before = {name: (directory(killed) / name).read_bytes() for name in names(killed)}
    reopened(killed).close()
    assert {name: (directory(killed) / name).read_bytes() for name in names(killed)} == before


def test_recovered_segments_of_old_formats_get_their_snapshots(tmp_path: Path) -> None:
    old = BareLog(tmp_path / "topic-0")
    for _ in range(3):
        old.write_legacy((b"key", b"value"), magic=1)
        old.write_legacy((b"key", b"value"), (b"key", b"value"), magic=0, compression=1)
        old.roll()
    disk = Disk(tmp_path)
    reopened(disk).close()
    assert names(disk, ".snapshot") == [f"{offset:020d}.snapshot" for offset in (3, 6, 9)]
