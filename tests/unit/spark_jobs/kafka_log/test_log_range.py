"""A directory that changes while it is read."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from odradek.storage.log.segment_swap import rename_to_swap, replace_segments
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.log_segment import LogSegment
from spark_jobs.kafka_log.errors import CorruptLogFileError, DataLossError
from spark_jobs.kafka_log.planning import SegmentTask
from tests.support.disks.logs import NOW, Disk, append, batch
from tests.support.kafka_log import interfering, offsets, planned, rows_of, write_high_watermark


def make_log(disk: Disk, segments: int = 6, per_segment: int = 3) -> UnifiedLog:
    """Segments of three records; the last one is empty."""
    log = disk.log({"file.delete.delay.ms": "1000", "retention.ms": "100000000"})
    for number in range(segments * per_segment):
        append(log, b"value %d" % number, timestamp=NOW + number)
        if number % per_segment == per_segment - 1:
            log.roll()
    log.update_high_watermark(log.log_end_offset)
    write_high_watermark(disk.path, log.log_end_offset)
    return log


def compact(disk: Disk, log: UnifiedLog, bases: list[int], keep: list[int]) -> None:
    """Make one segment of several, as the cleaner does; of their records `keep` stay."""
    segment = LogSegment.open(log.dir, bases[0], log.config, disk.environment, create=True, suffix=".cleaned")
    for offset in keep:
        segment.append([batch(b"value %d" % offset, base_offset=offset, timestamp=NOW)], offset, NOW, offset)
    segment.close()
    replace_segments(log.state, rename_to_swap(log.dir, [bases[0]], log.config, disk.environment), bases)


def read(tasks: list[SegmentTask], path: Path, **options: object) -> list[int]:
    return [row["offset"] for row in rows_of(tasks, path, **options)]


def test_segments_that_are_marked_as_deleted_are_read_until_they_are_gone(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    tasks = planned(tmp_path)
    log.delete_records(7)
    log.delete_old_segments()
    assert len(list(Path(log.dir).glob("*.log.deleted"))) == 2
    assert read(tasks, tmp_path) == list(range(18))
    disk.advance(1000)
    with pytest.raises(DataLossError, match=r"topic-0: the offsets 0 to 2 are gone \(failOnDataLoss=false goes on"):
        read(tasks, tmp_path)
    assert read(tasks, tmp_path, failOnDataLoss=False) == list(range(6, 18))


def test_a_compaction_between_plan_and_read_loses_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    tasks = planned(tmp_path)
    compact(disk, log, [0, 3, 6], [1, 5, 8])
    assert len(tasks) == 6
    assert read(tasks, tmp_path) == [1, 5, 8, *range(9, 18)]
    disk.advance(1000)
    assert read(tasks, tmp_path) == [1, 5, 8, *range(9, 18)]


def test_what_a_compaction_left_halfway_is_read(tmp_path: Path) -> None:
    """The state between the renames: some originals are marked as deleted, the new segment is still `.swap`."""
    disk = Disk(tmp_path)
    log = make_log(disk)
    segment = LogSegment.open(log.dir, 0, log.config, disk.environment, create=True, suffix=".cleaned")
    for offset in (1, 5):
        segment.append([batch(b"new", base_offset=offset)], offset, NOW, offset)
    segment.close()
    assert offsets(tmp_path) == list(range(18)), ".cleaned is not part of the log"
    for path in Path(log.dir).glob("*.cleaned"):
        path.rename(str(path).replace(".cleaned", ".swap"))
    assert offsets(tmp_path) == list(range(18)), "the originals are still there"
    for path in Path(log.dir).glob("00000000000000000000.*"):
        if not path.name.endswith(".swap"):
            path.rename(f"{path}.deleted")
    assert offsets(tmp_path) == [1, *range(3, 18)]
    for path in Path(log.dir).glob("00000000000000000003.*"):
        path.rename(f"{path}.deleted")
    assert offsets(tmp_path) == [1, 5, *range(6, 18)]


@pytest.mark.parametrize("seed", range(25))
def test_whatever_the_broker_does_meanwhile_each_record_that_stays_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Before a directory is listed or a file opened, the broker appends, rolls, compacts, deletes and unlinks."""
    rng = random.Random(seed)
    disk = Disk(tmp_path)
    log = make_log(disk, segments=8)
    removed: set[int] = set()

    def interfere(_: str) -> None:
        bases = log.segments.base_offsets
        match rng.randrange(7):
            case 0:
                append(log, b"more")
            case 1:
                append(log, b"more")
                log.roll()
            case 2 if len(bases) > 4:
                first = rng.randrange(len(bases) - 3)
                group = bases[first : first + rng.randrange(1, 4)]
                end = bases[first + len(group)]
                keep = [offset for offset in range(group[0], end) if offset not in removed and rng.random() < 0.7]
                removed.update(set(range(group[0], end)) - set(keep))
                compact(disk, log, group, keep)
            case 3 if len(bases) > 3:
                log.update_high_watermark(log.log_end_offset)
                log.delete_records(bases[1])
                log.delete_old_segments()
                removed.update(range(bases[1]))
            case 4:
                disk.advance(rng.randrange(1500))

    with interfering(monkeypatch, interfere):
        tasks = planned(tmp_path)
        found = read(tasks, tmp_path, failOnDataLoss=False)
    assert found == sorted(set(found)), "none twice, and in order"
    assert set(found) <= set(range(24)), "what was appended after the plan is not in it"
    start = tasks[0].start if tasks else 24
    assert set(range(start, 24)) - removed <= set(found), "what is still there was read"


def test_a_topic_that_is_deleted_while_it_is_read(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    log.assign_topic_id(b"\x01" * 16)
    tasks = planned(tmp_path)
    deleted = tmp_path / f"topic-0.{'a' * 32}-delete"
    os.rename(log.dir, deleted)
    assert read(tasks, tmp_path) == list(range(18)), "its files are still there"
    append(other := Disk(tmp_path).log(), *[b"of another topic"] * 18)
    other.assign_topic_id(b"\x02" * 16)
    assert read(tasks, tmp_path) == list(range(18))
    shutil.rmtree(deleted)
    assert read(tasks, tmp_path, failOnDataLoss=False) == [], "another topic has its name"
    shutil.rmtree(tmp_path / "topic-0")
    with pytest.raises(DataLossError, match="topic-0: the offsets 0 to 2 are gone"):
        read(tasks, tmp_path)


def test_a_replica_that_moves_to_another_directory_is_found_there(tmp_path: Path) -> None:
    log = make_log(Disk(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "meta.properties").touch()
    path = f"{tmp_path}/a,{tmp_path}/b"
    tasks = planned(path)
    os.rename(log.dir, tmp_path / "b" / "topic-0")
    assert [row["offset"] for row in rows_of(tasks, path)] == list(range(18))


def test_a_log_that_is_shorter_than_its_high_watermark_is_a_loss(tmp_path: Path) -> None:
    log = make_log(Disk(tmp_path))
    write_high_watermark(tmp_path, 20)
    with pytest.raises(DataLossError, match="topic-0: the offsets 18 to 19 are not in the log, which ends in"):
        offsets(tmp_path)
    assert offsets(tmp_path, failOnDataLoss=False) == list(range(18))
    last = Path(log.dir, f"{18:020d}.log")
    last.write_bytes(bytes(batch(b"x", base_offset=18)) + bytes(batch(b"y", base_offset=19))[:-1])
    with pytest.raises(CorruptLogFileError, match="the file ends inside it"):
        offsets(tmp_path, failOnDataLoss=False)
    assert offsets(tmp_path, failOnDataLoss=False, mode="PERMISSIVE") == list(range(19))
    write_high_watermark(tmp_path, 19)
    assert offsets(tmp_path) == list(range(19)), "what is torn lies beyond the high watermark"


def test_a_torn_segment_in_the_middle_is_an_error(tmp_path: Path) -> None:
    log = make_log(Disk(tmp_path))
    torn = Path(log.dir, f"{3:020d}.log")
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(CorruptLogFileError, match=f"{torn}: the batch at byte .* cannot be read: the file ends inside"):
        offsets(tmp_path)
    assert offsets(tmp_path, mode="PERMISSIVE") == [*range(5), *range(6, 18)]
