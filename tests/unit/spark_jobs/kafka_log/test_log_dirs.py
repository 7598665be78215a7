"""Log directories: of several disks or brokers, in the middle of a move, and directories that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from spark_jobs.common.job import JobError
from spark_jobs.kafka_log import check
from spark_jobs.kafka_log.errors import KafkaLogError
from spark_jobs.kafka_log.log_dirs import cannot_read, find_replicas
from tests.support.disks.logs import Disk, append
from tests.support.kafka_log import checked, offsets, rows, write_checkpoint, write_high_watermark, write_log_start


def log_with(path: Path, *values: bytes, topic: str = "topic", partition: int = 0) -> UnifiedLog:
    log = Disk(path).log(tp=TopicPartition(topic, partition))
    for value in values:
        append(log, value)
    return log


def names(path: Path | str, **options: object) -> list[str]:
    return [os.path.relpath(replica.path, "/") for replica in find_replicas(checked(path, **options))]


def test_partitions_of_all_directories_in_order(tmp_path: Path) -> None:
    for directory, topic, partition in (("b", "orders", 10), ("a", "orders", 2), ("b", "my-topic", 0)):
        log_with(tmp_path / directory, b"x", topic=topic, partition=partition)
    for other in ("remote-log-index-cache", "lost+found", "__cluster_metadata-0"):
        (tmp_path / "a" / other).mkdir()
    (tmp_path / "a" / "file-7").touch()
    both = f"{tmp_path}/a,{tmp_path}/b"
    assert [name.rpartition("/")[2] for name in names(both)] == ["my-topic-0", "orders-2", "orders-10"]
    assert [name.rpartition("/")[2] for name in names(both, topic="orders", partition="10,11")] == ["orders-10"]
    assert [name.rpartition("/")[2] for name in names(both, topicPattern="my.*")] == ["my-topic-0"]
    assert {row["logDir"] for row in rows(both)} == {str(tmp_path / "a"), str(tmp_path / "b")}


def test_copies_that_are_no_replicas_are_not_read(tmp_path: Path) -> None:
    log_with(tmp_path, b"a", b"b")
    for suffix in ("future", "delete", "stray"):
        log_with(tmp_path / "other", b"copy", topic=f"topic-0.{'0' * 32}-{suffix}".removesuffix("-0"))
        os.rename(tmp_path / "other" / f"topic-0.{'0' * 32}-{suffix}-0", tmp_path / f"topic-0.{'0' * 32}-{suffix}")
    assert [row["value"] for row in rows(tmp_path)] == [b"a", b"b"]


def test_a_replica_that_is_swapped_during_a_scan_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory with the copy is listed before it gets its name, the one with the original after its end."""
    log_with(tmp_path / "a", b"x")
    future = tmp_path / "a" / f"topic-0.{'0' * 32}-future"
    os.rename(tmp_path / "a" / "topic-0", future)
    (tmp_path / "b" / f"topic-0.{'1' * 32}-delete").mkdir(parents=True)
    (tmp_path / "b" / "meta.properties").touch()
    listed = []
    original = os.listdir

    def list_directory(path: str) -> list[str]:
        found = original(path)
        listed.append(path)
        if len(listed) == 2:
            os.rename(future, tmp_path / "a" / "topic-0")
        return found

    monkeypatch.setattr(os, "listdir", list_directory)
    assert len(names(f"{tmp_path}/a,{tmp_path}/b")) == 1


def test_of_several_replicas_the_most_complete_is_read(tmp_path: Path) -> None:
    """The directories of several brokers."""
    for directory, count, high_watermark in (("a", 2, 2), ("b", 3, 3), ("c", 3, 1)):
        log_with(tmp_path / directory, *[directory.encode()] * count)
        write_high_watermark(tmp_path / directory, high_watermark)
    all_three = f"{tmp_path}/a,{tmp_path}/b,{tmp_path}/c"
    assert [(row["offset"], row["value"]) for row in rows(all_three)] == [(0, b"b"), (1, b"b"), (2, b"b")]
    assert [row["value"] for row in rows(all_three, replicas="all")] == [b"a", b"a", b"b", b"b", b"b", b"c"]


# -- checkpoints ---------------------------------------------------------


def test_nothing_beyond_the_high_watermark_is_read(tmp_path: Path) -> None:
    log_with(tmp_path, b"a", b"b", b"c")
    write_high_watermark(tmp_path, 2)
    assert offsets(tmp_path) == [0, 1]
    assert offsets(tmp_path, beyondHighWatermark=True) == [0, 1, 2]


def test_without_a_checkpoint_all_is_read(tmp_path: Path) -> None:
    """A copy of some partitions: nothing says how far they are committed."""
    log_with(tmp_path, b"a", b"b")
    assert offsets(tmp_path) == [0, 1]


def test_a_partition_without_an_entry_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker has made it since the last checkpoint."""
    log_with(tmp_path, b"a")
    write_checkpoint(tmp_path, "replication-offset-checkpoint", other_0=5)
    assert offsets(tmp_path) == []
    assert "topic-0 in" in (line := capsys.readouterr().err)
    assert "beyondHighWatermark=true" in line
    assert offsets(tmp_path, beyondHighWatermark=True) == [0]
    assert capsys.readouterr().err == ""


def test_the_log_start_offset_may_lie_in_a_batch(tmp_path: Path) -> None:
    """DeleteRecords moves it anywhere."""
    append(Disk(tmp_path).log(), b"a", b"b", b"c")
    write_log_start(tmp_path, 1)
    assert offsets(tmp_path) == [1, 2]


# -- what cannot be read -------------------------------------------------


def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    log_with(tmp_path, b"a")
    with pytest.raises(KafkaLogError, match=rf"^topic other, third is not in {tmp_path}$"):
        rows(tmp_path, topic="topic,other,third")
    with pytest.raises(JobError, match="topic other is not in"):
        check(str(tmp_path), {"topic": "other"})
    check(str(tmp_path), {"topic": "topic"})
    assert rows(tmp_path, topicPattern="x.*") == []
    assert rows(tmp_path, partition="5") == []


def test_directories_that_are_none_of_kafka(tmp_path: Path) -> None:
    log_with(tmp_path / "data", b"a")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "summer-2024").mkdir()
    (tmp_path / "photos" / "list.log").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "meta.properties").touch()
    refused = {
        "nowhere": r"there is no .*/nowhere on this machine",
        "file": r".*/file is not a directory",
        "empty": r".*/empty is no log directory of Kafka: it has no directory TOPIC-PARTITION and no meta.properties",
        "data/topic-0": r".*/topic-0 is the directory of a partition: load .*/data, and select with topic",
    }
    for name, line in refused.items():
        with pytest.raises(KafkaLogError, match=f"^{line}$"):
            rows(tmp_path / name)
    assert rows(tmp_path / "broker") == [], "a broker without partitions"


def test_checkpoints_that_are_garbage(tmp_path: Path) -> None:
    log_with(tmp_path, b"a")
    (tmp_path / "replication-offset-checkpoint").write_bytes(b"\x00\xff")
    with pytest.raises(KafkaLogError, match="replication-offset-checkpoint is no checkpoint of offsets"):
        rows(tmp_path)


def test_what_is_said_of_a_path_without_rights() -> None:
    assert cannot_read("/x", PermissionError(13, "no")) == "/x may not be read by this user"
    assert cannot_read("/x", OSError(5, "Input/output error")) == "/x cannot be read: Input/output error"


def test_a_partition_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_with(tmp_path, b"a")
    original = os.listdir

    def refused(path: str) -> list[str]:
        if path == log.dir:
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(KafkaLogError, match=f"^{log.dir} may not be read by this user$"):
        rows(tmp_path)


def test_a_segment_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_with(tmp_path, b"a")
    write_high_watermark(tmp_path, 1)
    original = os.open

    def refused(path: str, *arguments: int) -> int:
        if str(path).endswith(".log"):
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(KafkaLogError, match=f"^{log.dir}/{0:020d}.log may not be read by this user$"):
        rows(tmp_path)
    with pytest.raises(KafkaLogError, match="may not be read by this user"):
        rows(tmp_path, beyondHighWatermark=True)
