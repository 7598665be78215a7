"""Producer state at start, as in Apache's LogLoaderTest: snapshots that stay, are written again, and are used."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

import pytest

from odradek.protocol.records.batch import assign_prefix
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.config.log_config import LogConfig
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.producers.producer_state import ProducerStateEntry
from odradek.storage.producers.producer_state_manager import ProducerMemory, encode_snapshot
from odradek.storage.recovery.log_loader import load_log
from odradek.storage.recovery.recovery_job import RecoveryJob, recover_log
from tests.support.disks.faulty_disk import FaultyFileSystem
from tests.support.disks.logs import TP, Disk, append, crash_copy, marker

PRODUCER = {"producer_id": 1, "producer_epoch": 0}


def fill(log: UnifiedLog, segments: int = 4) -> None:
    """Two batches of one producer in each segment: bases 0, 2, 4, 6, and an end at 8."""
    for number in range(2 * segments):
        if number and number % 2 == 0:
            log.roll()
        append(log, b"%d" % number, base_sequence=number, **PRODUCER)


def snapshots(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in (path / "topic-0").glob("*.snapshot"))


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    fill(Disk(tmp_path / "live").log())
    return crash_copy(tmp_path / "live", tmp_path / "killed")


def last_sequence(log: UnifiedLog) -> int:
    return log.active_producers()[1].last_seq


def test_snapshots_of_segments_and_of_the_end_are_there_after_recovery(killed: Path) -> None:
    for file in (killed / "topic-0").glob("*.snapshot"):
        file.unlink()
    assert last_sequence(Disk(killed).log()) == 7
    assert snapshots(killed) == [2, 4, 6, 8]


def test_a_second_recovery_frees_no_block_of_the_disk(killed: Path) -> None:
    """To free one takes milliseconds on many disks, and a start after a kill recovers every log."""
    assert last_sequence(Disk(killed).log()) == 7
    fs = FaultyFileSystem(kinds=frozenset({"truncate", "allocate", "unlink", "write"}))
    assert last_sequence(Disk(killed, fs=fs).log()) == 7
    assert fs.operations == []


def test_recovery_replaces_a_snapshot_that_is_not_of_this_log(killed: Path) -> None:
    _, *stale = sorted((killed / "topic-0").glob("*.snapshot"))
    for file in stale:
        file.write_bytes(encode_snapshot([ProducerStateEntry(9)]))
    (killed / "topic-0" / f"{20:020}.snapshot").write_bytes(encode_snapshot([ProducerStateEntry(9)]))
    assert [*Disk(killed).log().active_producers()] == [1]
    assert snapshots(killed) == [2, 4, 6, 8]
    assert [*Disk(killed).log(recovery_point=6).active_producers()] == [1]


def test_recovery_of_the_last_segment_leaves_the_others_alone(killed: Path) -> None:
    """It uses the snapshot at its base; earlier ones are not needed and stay."""
    assert last_sequence(Disk(killed).log(recovery_point=6)) == 7
    assert snapshots(killed) == [2, 4, 6, 8]


def test_recovery_of_the_last_segment_without_snapshots_replays_the_whole_log(killed: Path) -> None:
    for file in (killed / "topic-0").glob("*.snapshot"):
        file.unlink()
    log = Disk(killed).log(recovery_point=6)
    assert last_sequence(log) == 7
    assert snapshots(killed) == [4, 6, 8], "of the last two segments and of the end"


@pytest.mark.parametrize("recovery_point", [0, 6, 8])
def test_what_an_idempotent_producer_repeats_after_kills_is_known(killed: Path, recovery_point: int) -> None:
    """Its last batches lie in two segments, and the snapshot of the first recovery has one of them."""
    for _ in range(2):
        log = Disk(killed).log(recovery_point=recovery_point)
    assert repeated(log, range(4, 8)) == [4, 5, 6, 7]
    assert log.log_end_offset == 8


@pytest.mark.parametrize("recovery_point", [4, 8])
def test_its_last_batches_may_lie_in_many_small_segments(tmp_path: Path, recovery_point: int) -> None:
    log = Disk(tmp_path).log()
    for sequence in range(8):
        append(log, b"value", base_sequence=sequence, **PRODUCER)
        log.roll()
    log.discard()
    log = Disk(tmp_path).log(recovery_point=recovery_point)
    assert repeated(log, range(3, 8)) == [3, 4, 5, 6, 7]
    assert log.log_end_offset == 8


def test_what_it_repeats_is_known_as_well_when_a_worker_has_recovered_the_log(killed: Path) -> None:
    disk = Disk(killed)
    job = RecoveryJob(
        path=str(killed / "topic-0"),
        topic_partition=TP,
        config=LogConfig.from_props({}, {}),
        log_start_offset=0,
        recovery_point=6,
        first_dirty_offset=0,
        had_clean_shutdown=False,
        producer_id_expiration_ms=2**62,
    )
    recovered = recover_log(job, lambda _: None)
    assert isinstance(recovered, ProducerMemory)
    memory = pickle.loads(pickle.dumps(recovered))
    log = load_log(job.path, TP, job.config, disk.log_dir, disk.environment, recovery_point=6, recovered=memory)
    assert repeated(log, range(4, 8)) == [4, 5, 6, 7]


def repeated(log: UnifiedLog, sequences: Iterable[int]) -> list[int]:
    """The offsets returned for batches that are in the log already."""
    return [append(log, b"again", base_sequence=sequence, **PRODUCER) for sequence in sequences]


def test_largest_stray_snapshot_is_kept_and_the_others_go(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    fill(log)
    log.close()
    intact = (tmp_path / "topic-0" / f"{8:020d}.snapshot").read_bytes()
    for offset in (1, 3, 5, 7):
        (tmp_path / "topic-0" / f"{offset:020d}.snapshot").write_bytes(intact)
    log = Disk(tmp_path).log(clean=True)
    assert (last_sequence(log), snapshots(tmp_path)) == (7, [2, 4, 6, 8])


def test_corrupt_snapshot_is_deleted_and_the_one_before_is_used(killed: Path) -> None:
    newest = killed / "topic-0" / f"{6:020d}.snapshot"
    newest.write_bytes(newest.read_bytes()[:-1] + b"\xff")
    assert last_sequence(Disk(killed).log(recovery_point=6)) == 7
    assert snapshots(killed) == [2, 4, 6, 8], "made anew at the base of the segment that was recovered"


def test_snapshots_beyond_the_end_are_deleted_with_the_segments_after_a_bad_batch(killed: Path) -> None:
    """Their delayed deletion does not delete the files that recovery writes afterwards."""
    bad = killed / "topic-0" / f"{2:020d}.log"
    bad.write_bytes(bad.read_bytes()[:-1])
    disk = Disk(killed)
    log = disk.log()
    assert (log.log_end_offset, last_sequence(log)) == (3, 2)
    assert snapshots(killed) == [2, 3]
    log.roll()
    append(log, b"3", base_sequence=3, **PRODUCER)
    log.roll()
    disk.advance(60_000)
    assert snapshots(killed) == [2, 3, 4]
    assert not list((killed / "topic-0").glob("*.deleted"))


def test_producer_whose_records_were_deleted_is_forgotten_at_the_next_start(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append(log, b"0", producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, b"1", base_sequence=0, **PRODUCER)
    log.close()
    (tmp_path / "topic-0" / f"{2:020d}.snapshot").unlink()
    (tmp_path / "topic-0" / f"{1:020d}.snapshot").write_bytes(b"rubbish")
    log = Disk(tmp_path).log(clean=True, log_start_offset=1)
    assert set(log.active_producers()) == {1}


def test_marker_of_an_older_coordinator_does_not_stop_recovery(tmp_path: Path) -> None:
    """It is in the log of this replica because a leader accepted it."""
    log = Disk(tmp_path / "live").log()
    for offset, coordinator_epoch in ((0, 5), (2, 3)):
        data = {**PRODUCER, "base_sequence": offset // 2, "is_transactional": True}
        append(log, b"v", **data)
        end = bytearray(marker(ControlRecordType.COMMIT, producer_id=1, coordinator_epoch=coordinator_epoch))
        assign_prefix(end, offset + 1, 0)
        log.append_as_follower(memoryview(end))
    again = Disk(crash_copy(tmp_path / "live", tmp_path / "killed")).log()
    assert again.log_end_offset == 4
    assert again.first_unstable_offset in (None, 0)
