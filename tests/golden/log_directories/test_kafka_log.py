"""Log directories of Apache Kafka 3.9.1: the data source `kafka_log` reads what a consumer of Apache Kafka reads."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from odradek.protocol.records.batch import batches
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import read_offsets
from tests.support.kafka_log import milliseconds, rows

CAPTURED = Path(__file__).parent
EXPECTED = json.loads((CAPTURED / "expected.json").read_text())


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("directory", ["clean", "killed"])
def test_rows_are_what_a_consumer_gets(directory: str, isolation: str) -> None:
    found = rows(CAPTURED / directory, isolationLevel=isolation, beyondHighWatermark=True)
    assert [[row["offset"], milliseconds(row), (row["value"] or b"").decode()] for row in found] == EXPECTED[isolation]


@pytest.mark.parametrize("directory", ["clean", "killed"])
def test_aborted_rows_are_those_that_read_committed_leaves_out(directory: str) -> None:
    found = rows(CAPTURED / directory, beyondHighWatermark=True)
    committed = {offset for offset, *_ in EXPECTED["read_committed"]}
    assert {row["offset"] for row in found if row["isAborted"]} == {row["offset"] for row in found} - committed


@pytest.mark.parametrize("directory", ["clean", "killed"])
@pytest.mark.parametrize("suffixes", [("txnindex",), ("index", "timeindex", "txnindex"), ("snapshot", "index")])
def test_markers_decide_without_indexes(tmp_path: Path, directory: str, suffixes: tuple[str, ...]) -> None:
    """A copy of the `.log` files alone says the same."""
    shutil.copytree(CAPTURED / directory, tmp_path / "data")
    if "index" not in suffixes:  # the index of transactions may only be missing where it is not trusted
        (tmp_path / "data" / "recovery-point-offset-checkpoint").unlink()
        (tmp_path / "data" / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for suffix in suffixes:
        for path in (tmp_path / "data" / "captured-0").glob(f"*.{suffix}"):
            path.unlink()
    found = rows(tmp_path / "data", isolationLevel="read_committed", beyondHighWatermark=True)
    assert [row["offset"] for row in found] == [offset for offset, *_ in EXPECTED["read_committed"]]


def test_facts_of_the_batches() -> None:
    """Each row has the header of the batch that it came in."""
    found = {row["offset"]: row for row in rows(CAPTURED / "clean", includeControl=True, includeHeaders=True)}
    names = ("none", "gzip", "snappy", "lz4", "zstd")
    seen = 0
    for path in sorted((CAPTURED / "clean" / "captured-0").glob("*.log")):
        for batch in batches(memoryview(path.read_bytes())):
            for record in batch.records():
                row = found[record.offset]
                seen += 1
                assert row["segment"] == path.name
                assert row["logDir"] == str(CAPTURED / "clean")
                assert (row["topic"], row["partition"]) == ("captured", 0)
                assert (row["key"], row["value"]) == (record.key, record.value)
                assert (milliseconds(row), row["timestampType"]) == (record.timestamp, batch.timestamp_type)
                assert row["leaderEpoch"] == batch.partition_leader_epoch
                assert (row["producerId"], row["producerEpoch"]) == (batch.producer_id, batch.producer_epoch)
                assert row["sequence"] == record.sequence
                assert row["compression"] == names[batch.compression_type]
                assert (row["batchOffset"], row["batchSize"]) == (batch.base_offset, batch.size_in_bytes)
                assert (row["isTransactional"], row["isControl"]) == (batch.is_transactional, batch.is_control)
                assert [(h["key"], h["value"]) for h in row["headers"] or ()] == list(record.headers)
    assert seen == len(found) > 130


def old_segments() -> list[bytes]:
    """What Apache Kafka 3.9.1 stored, from offset 1000 on: formats 0, 1 and 2, three codecs, both kinds of time."""
    lines = (CAPTURED.parent / "records" / "old-formats-3.9.1.txt").read_text().splitlines()
    stored = (line.split("\t")[-1] for line in lines if line.startswith("stored"))
    return [bytes.fromhex(content) for content in stored if re.fullmatch("[0-9a-f]+", content)]


def test_segments_in_the_old_formats(tmp_path: Path) -> None:
    """One partition for each set of records."""
    segments = old_segments()
    for number, content in enumerate(segments):
        directory = tmp_path / f"old-{number}"
        directory.mkdir()
        (directory / f"{1000:020d}.log").write_bytes(content)
    expected = [
        (number, record.offset, record.timestamp, batch.timestamp_type, record.key, record.value, list(record.headers))
        if batch.timestamp_type != 1
        else (number, record.offset, batch.max_timestamp, 1, record.key, record.value, list(record.headers))
        for number, content in enumerate(segments)
        for batch in batches(memoryview(content))
        for record in batch.records()
    ]
    assert len({batch.magic for content in segments for batch in batches(memoryview(content))}) == 3
    assert [
        (
            *(row["partition"], row["offset"], milliseconds(row), row["timestampType"], row["key"], row["value"]),
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in rows(tmp_path, includeHeaders=True)
    ] == expected


@pytest.mark.parametrize("path", sorted(p.name for p in (CAPTURED / "files").iterdir() if p.is_dir()))
def test_every_captured_log_is_read_whole(path: str) -> None:
    """Compacted, emptied, trimmed and retained logs too: all records from the log start offset on."""
    found = rows(CAPTURED / "files", topic=path.removesuffix("-0"))
    starts = read_offsets(str(CAPTURED / "files" / "log-start-offset-checkpoint"))
    start = starts.get(TopicPartition(path.removesuffix("-0"), 0), 0)
    expected = [
        (
            record.offset,
            record.timestamp if batch.timestamp_type == 0 else batch.max_timestamp,
            record.key,
            record.value,
        )
        for log in sorted((CAPTURED / "files" / path).glob("*.log"))
        for batch in batches(memoryview(log.read_bytes()))
        for record in batch.records()
        if record.offset >= start
    ]
    assert [(row["offset"], milliseconds(row), row["key"], row["value"]) for row in found] == expected
