from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.layout import MAGIC_POSITION
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from spark_jobs.kafka_log.errors import CorruptLogFileError, DataLossError, KafkaLogError
from spark_jobs.kafka_log.options import parse_options
from spark_jobs.kafka_log.segment_reader import read_task
from spark_jobs.kafka_log.stream_offsets import StreamOffsets, TopicOffsets
from tests.support.disks.logs import NOW, Disk, append
from tests.support.kafka_log import (
    append_transactional,
    end_transaction,
    files_opened,
    write_checkpoint,
    write_high_watermark,
)


class Stream:
    """A query: it reads what is new, and keeps where it is."""

    def __init__(self, path: Path, **options: str) -> None:
        self.options = parse_options({"path": str(path), **options}, streaming=True)
        self.offsets = StreamOffsets(self.options)
        self.start = self.offsets.initial()

    def batch(self) -> list[int]:
        """The offsets of the records of one micro-batch, after a trip of the offsets through Spark's JSON."""
        end: TopicOffsets = json.loads(json.dumps(self.offsets.latest()))
        tasks = self.offsets.tasks(self.start, end)
        found = [row["offset"] for task in tasks for part in read_task(task, self.options) for row in part.to_pylist()]
        self.start = end
        return found

    def restart(self) -> None:
        """Another process, with the offsets of the checkpoint."""
        self.offsets = StreamOffsets(self.options)


def log_with(path: Path, *values: bytes, topic: str = "topic", partition: int = 0) -> UnifiedLog:
    log = Disk(path).log({"file.delete.delay.ms": "1000"}, tp=TopicPartition(topic, partition))
    for value in values:
        append(log, value)
    return log


def test_a_stream_begins_at_the_end_and_follows_it(tmp_path: Path) -> None:
    log = log_with(tmp_path, b"a", b"b")
    write_high_watermark(tmp_path, 2)
    stream = Stream(tmp_path)
    assert stream.start == {"topic": {"0": 2}}
    assert stream.batch() == []
    append(log, b"c", b"d")
    assert stream.batch() == [], "the high watermark is where it was"
    write_high_watermark(tmp_path, 3)
    assert stream.batch() == [2]
    log.roll()
    append(log, b"e")
    write_high_watermark(tmp_path, 5)
    stream.restart()
    assert stream.batch() == [3, 4]
    assert stream.batch() == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffset": "earliest"}, [0, 1, 2]),
        ({"startingOffset": "1"}, [1, 2]),
        ({"startingOffset": '{"topic": {"0": 2}}'}, [2]),
        ({"startingOffset": "99"}, []),
        ({"startingTimestamp": str(NOW + 1)}, [1, 2]),
        ({"startingTimestamp": str(NOW + 9)}, []),
    ],
)
def test_where_a_stream_begins(tmp_path: Path, options: dict[str, str], expected: list[int]) -> None:
    log = log_with(tmp_path)
    for number in range(3):
        append(log, b"x", timestamp=NOW + number)
    write_high_watermark(tmp_path, 3)
    assert Stream(tmp_path, **options).batch() == expected


def test_new_partitions_and_topics_are_read_from_their_beginning(tmp_path: Path) -> None:
    log_with(tmp_path, b"a")
    write_checkpoint(tmp_path, "replication-offset-checkpoint", topic_0=1)
    stream = Stream(tmp_path, topicPattern="t.*")
    assert stream.batch() == []
    log_with(tmp_path, b"x", b"y", partition=1)
    log_with(tmp_path, b"z", topic="third")
    log_with(tmp_path, b"z", topic="other")
    write_checkpoint(tmp_path, "replication-offset-checkpoint", topic_0=1, topic_1=2, third_0=1, other_0=1)
    assert stream.batch() == [0, 0, 1]
    assert json.dumps(stream.start) == '{"third": {"0": 1}, "topic": {"0": 1, "1": 2}}', "the order is part of it"


def test_an_end_does_not_go_back_for_a_moment(tmp_path: Path) -> None:
    """The high watermark may, when the leader changes: nothing is read twice."""
    log = log_with(tmp_path, b"a", b"b", b"c")
    write_high_watermark(tmp_path, 3)
    stream = Stream(tmp_path, startingOffset="earliest")
    assert stream.batch() == [0, 1, 2]
    write_high_watermark(tmp_path, 2)
    assert stream.batch() == []
    append(log, b"d")
    write_high_watermark(tmp_path, 4)
    assert stream.batch() == [3]


def test_a_topic_that_is_made_again_is_a_loss_and_then_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_with(tmp_path, b"a", b"b", b"c")
    log.assign_topic_id(b"\x01" * 16)
    write_high_watermark(tmp_path, 3)
    strict = Stream(tmp_path, startingOffset="earliest")
    lenient = Stream(tmp_path, startingOffset="earliest", failOnDataLoss="false")
    assert strict.batch() == lenient.batch() == [0, 1, 2]
    shutil.rmtree(tmp_path / "topic-0")
    log = log_with(tmp_path, b"new")
    log.assign_topic_id(b"\x02" * 16)
    write_high_watermark(tmp_path, 1)
    with pytest.raises(DataLossError, match="topic-0: its end went back from 3 to 1"):
        strict.batch()
    assert lenient.batch() == []
    append(log, b"newer")
    write_high_watermark(tmp_path, 2)
    assert lenient.batch() == [1]
    assert "its end went back from 3 to 1" in capsys.readouterr().err


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_high_watermark_of_a_deleted_topic_is_not_that_of_the_new_one(
    tmp_path: Path, isolation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker checkpoints high watermarks every few seconds: until then the file has that of the deleted topic."""
    log = log_with(tmp_path, b"a", b"b", b"c")
    log.assign_topic_id(b"\x01" * 16)
    write_high_watermark(tmp_path, 3)
    strict, lenient = (
        Stream(tmp_path, startingOffset="earliest", isolationLevel=isolation, failOnDataLoss=loss)
        for loss in ("true", "false")
    )
    assert strict.batch() == lenient.batch() == [0, 1, 2]
    shutil.rmtree(tmp_path / "topic-0")
    log = log_with(tmp_path, b"new")
    log.assign_topic_id(b"\x02" * 16)
    assert Stream(tmp_path, isolationLevel=isolation).start == {"topic": {"0": 1}}
    with pytest.raises(DataLossError, match="topic-0: its end went back from 3 to 1"):
        strict.batch()
    assert lenient.batch() == []
    assert "its end went back from 3 to 1" in capsys.readouterr().err
    append_transactional(log, 1, b"open", sequence=0)
    append(log, b"newer")
    write_high_watermark(tmp_path, 3)
    assert lenient.batch() == ([1, 2] if isolation == "read_uncommitted" else [])


def test_a_log_that_was_cut_below_what_was_read_is_a_loss(tmp_path: Path) -> None:
    """An unclean election, or a disk that lost its last writes; the checkpoint may be older than the cut."""
    log = log_with(tmp_path, b"a", b"b", b"c")
    write_high_watermark(tmp_path, 3)
    streams = [Stream(tmp_path, startingOffset="earliest") for _ in range(2)]
    assert [stream.batch() for stream in streams] == [[0, 1, 2], [0, 1, 2]]
    log.truncate_to(2)
    with pytest.raises(DataLossError, match="topic-0: its end went back from 3 to 2"):
        streams[0].batch()
    write_high_watermark(tmp_path, 2)
    with pytest.raises(DataLossError, match="topic-0: its end went back from 3 to 2"):
        streams[1].batch()


def test_bytes_that_are_no_batch_do_not_end_a_log(tmp_path: Path) -> None:
    """The stream would wait before them without a word."""
    log = log_with(tmp_path, b"a", b"b", b"c")
    write_high_watermark(tmp_path, 3)
    path = Path(log.dir, f"{0:020d}.log")
    content = bytearray(path.read_bytes())
    content[len(content) // 3 + MAGIC_POSITION] = 9
    path.write_bytes(content)
    with pytest.raises(CorruptLogFileError, match="Invalid magic found in record: 9"):
        Stream(tmp_path, startingOffset="earliest").batch()


def test_a_partition_that_is_gone_is_a_loss(tmp_path: Path) -> None:
    log_with(tmp_path, b"a")
    log_with(tmp_path, b"a", partition=1)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", topic_0=1, topic_1=1)
    strict = Stream(tmp_path, topic="topic")
    lenient = Stream(tmp_path, topic="topic", failOnDataLoss="false")
    shutil.rmtree(tmp_path / "topic-1")
    with pytest.raises(DataLossError, match="topic-1 is gone: what it had from offset 1 on is not read"):
        strict.batch()
    assert lenient.batch() == []
    assert lenient.start == {"topic": {"0": 1}}


def test_a_partition_that_goes_between_the_offsets_and_the_tasks_is_a_loss(tmp_path: Path) -> None:
    log_with(tmp_path, b"a")
    offsets = StreamOffsets(parse_options({"path": str(tmp_path)}, streaming=True))
    end = offsets.latest()
    shutil.rmtree(tmp_path / "topic-0")
    (tmp_path / "meta.properties").touch()
    with pytest.raises(DataLossError, match="topic-0 is gone: its offsets 0 to 0 are not read"):
        offsets.tasks({}, end)


def test_retention_that_is_faster_than_the_stream_is_a_loss(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log({"file.delete.delay.ms": "1000"})
    for value in (b"a", b"b", b"c"):
        append(log, value)
        log.roll()
    log.update_high_watermark(3)
    write_high_watermark(tmp_path, 3)
    first, second = (Stream(tmp_path, startingOffset="earliest") for _ in range(2))
    log.delete_records(2)
    log.delete_old_segments()
    assert first.batch() == [0, 1, 2], "the files are marked as deleted, and still there"
    disk.advance(1000)
    with pytest.raises(DataLossError, match="topic-0: the offsets 0 to 1 are gone"):
        second.batch()


def test_read_committed_follows_the_last_stable_offset_without_reading_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_with(tmp_path, b"a")
    write_high_watermark(tmp_path, 1)
    stream = Stream(tmp_path, isolationLevel="read_committed", startingOffset="earliest")
    assert stream.batch() == [0]
    for sequence in range(3):
        append_transactional(log, 1, b"open", sequence=sequence)
        write_high_watermark(tmp_path, log.log_end_offset)
        assert stream.batch() == []
    end_transaction(log, 1, ControlRecordType.ABORT)
    append(log, b"b")
    write_high_watermark(tmp_path, log.log_end_offset)
    assert stream.batch() == [5]
    append_transactional(log, 1, b"c", sequence=3)
    end_transaction(log, 1, ControlRecordType.COMMIT)
    write_high_watermark(tmp_path, log.log_end_offset)
    stream.restart()
    assert stream.batch() == [6]
    progress = next(iter(stream.offsets._progress.values()))
    assert progress.transactions.offset == log.log_end_offset
    with files_opened(monkeypatch) as names:
        stream.offsets.latest()
    assert len(names) <= 1, "nothing is new: no more than a look at the end"


def test_a_topic_must_be_there_at_the_start(tmp_path: Path) -> None:
    log_with(tmp_path, b"a")
    with pytest.raises(KafkaLogError, match="topic other is not in"):
        Stream(tmp_path, topic="other")
