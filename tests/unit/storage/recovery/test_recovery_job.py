"""Recovery in a worker: the files that it leaves, and the estimate of its work."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.config.log_config import LogConfig
from odradek.storage.producers.producer_state_manager import ProducerMemory
from odradek.storage.recovery.log_loader import load_log
from odradek.storage.recovery.recovery_job import RecoveryJob, RecoveryProgress, Unloadable, bytes_to_scan, recover_log
from tests.support.disks.logs import NOW, TP, Disk, append, batch, crash_copy, read_all, values_of

SIZE = len(batch(b"00"))
SEGMENTS_OF_TWO = {"segment.bytes": str(2 * SIZE), "index.interval.bytes": "0"}


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Six records in three segments, as a killed broker leaves them."""
    log = Disk(tmp_path / "live").log(SEGMENTS_OF_TWO)
    for number in range(6):
        append(log, b"%02d" % number, timestamp=NOW + number, epoch=number // 2)
    return crash_copy(tmp_path / "live" / "topic-0", tmp_path / "killed" / "topic-0")


def job(path: Path, *, recovery_point: int = 0) -> RecoveryJob:
    made = RecoveryJob(
        path=str(path),
        topic_partition=TP,
        config=LogConfig.from_props({}, SEGMENTS_OF_TWO),
        log_start_offset=0,
        recovery_point=recovery_point,
        first_dirty_offset=0,
        had_clean_shutdown=False,
        producer_id_expiration_ms=86_400_000,
    )
    assert pickle.loads(pickle.dumps(made)) == made
    return made


def test_what_a_worker_has_recovered_is_opened_without_a_scan(killed: Path) -> None:
    last = killed / "00000000000000000004.log"
    last.write_bytes(last.read_bytes()[:-1])
    (killed / "leader-epoch-checkpoint").unlink()
    recovered = recover_log(job(killed), lambda _: None)
    assert isinstance(recovered, ProducerMemory)
    assert last.stat().st_size == SIZE
    assert (killed / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n1 2\n2 4\n"
    disk = Disk(killed.parent)
    before = {path.name: path.stat().st_mtime_ns for path in killed.iterdir()}
    log = load_log(
        str(killed),
        TP,
        LogConfig.from_props({}, SEGMENTS_OF_TWO),
        disk.log_dir,
        disk.environment,
        recovered=recovered,
        recovery_point=2,
    )
    assert {path.name: path.stat().st_mtime_ns for path in killed.iterdir()} == before
    assert values_of(read_all(log)) == [b"%02d" % number for number in range(5)]
    assert log.recovery_point == 2


def test_segments_behind_a_bad_batch_leave_no_file(killed: Path) -> None:
    first = killed / "00000000000000000000.log"
    first.write_bytes(first.read_bytes()[:-1])
    recover_log(job(killed), lambda _: None)
    assert sorted(path.name for path in killed.glob("*.log*")) == ["00000000000000000000.log"]


def test_progress_counts_segments_and_bytes(killed: Path) -> None:
    told: list[object] = []
    recover_log(job(killed, recovery_point=2), told.append)
    assert all(isinstance(each, RecoveryProgress) for each in told)
    assert told[0] == RecoveryProgress(2, 0)
    assert told[-1] == RecoveryProgress(0, 0)
    assert sum(each.scanned_bytes for each in told) == 4 * SIZE  # type: ignore[attr-defined]


def test_an_unrepairable_log_is_a_result_and_no_bug(killed: Path) -> None:
    """A record outside of the transaction that its producer has open."""
    open_txn, outside = (
        build_batch(
            [SimpleRecord(NOW, b"k", b"v")],
            base_offset=offset,
            producer_id=1,
            producer_epoch=0,
            base_sequence=offset,
            is_transactional=offset == 0,
        )
        for offset in range(2)
    )
    (killed / "00000000000000000000.log").write_bytes(bytes(open_txn) + bytes(outside))
    result = recover_log(job(killed), lambda _: None)
    assert isinstance(result, Unloadable)
    assert "transaction" in result.reason


def test_bytes_to_scan_after_a_kill_begin_with_the_segment_of_the_recovery_point(killed: Path) -> None:
    found = [bytes_to_scan(str(killed), point, had_clean_shutdown=False) for point in (0, 1, 2, 5, 6)]
    assert found == [6 * SIZE, 6 * SIZE, 4 * SIZE, 2 * SIZE, 2 * SIZE]


def test_bytes_to_scan_after_a_clean_stop(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log(SEGMENTS_OF_TWO)
    for number in range(5):
        append(log, b"%02d" % number)
    log.close()
    path = tmp_path / "topic-0"

    def count() -> int:
        return bytes_to_scan(str(path), 0, had_clean_shutdown=True)

    assert count() == 0
    (path / "00000000000000000005.snapshot").unlink()
    assert count() == SIZE, "producers are replayed from the snapshot before the last segment"
    (path / "00000000000000000000.index").unlink()
    assert count() == 3 * SIZE
    (path / "00000000000000000000.log.swap").touch()
    assert count() >= 5 * SIZE
    assert bytes_to_scan(str(tmp_path), 0, had_clean_shutdown=False) == 0


def test_bytes_to_scan_reach_back_by_a_segment_where_there_are_producers(tmp_path: Path) -> None:
    log = Disk(tmp_path).log(SEGMENTS_OF_TWO)
    for number in range(6):
        append(log, b"%02d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
    found = [bytes_to_scan(log.dir, point, had_clean_shutdown=False) for point in (0, 2, 5)]
    assert found == [6 * SIZE, 6 * SIZE, 4 * SIZE]
