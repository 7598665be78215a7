"""What Spark asks of the data source, in the order in which it asks; without a JVM."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from spark_jobs.kafka_log.errors import KafkaLogError
from spark_jobs.kafka_log.source import KafkaLogDataSource
from tests.support.disks.logs import Disk, append
from tests.support.kafka_log import write_high_watermark


@pytest.fixture
def data(tmp_path: Path) -> Path:
    log = Disk(tmp_path).log()
    append(log, b"a", b"b")
    log.roll()
    append(log, b"c")
    write_high_watermark(tmp_path, 3)
    return tmp_path


def test_a_batch(data: Path) -> None:
    source = KafkaLogDataSource({"path": str(data)})
    assert source.name() == "kafka_log"
    assert source.schema().startswith("key binary, value binary, topic string, partition int, offset long, ")
    reader = source.reader(StructType())
    partitions = [pickle.loads(pickle.dumps(partition)) for partition in reader.partitions()]
    reader = pickle.loads(pickle.dumps(reader))
    assert [[part["offset"].to_pylist() for part in reader.read(each)] for each in partitions] == [[[0, 1]], [[2]]]


def test_nothing_to_read_is_the_partition_none(data: Path) -> None:
    reader = KafkaLogDataSource({"path": str(data), "startingOffset": "3"}).reader(StructType())
    assert reader.partitions() == []
    assert list(reader.read(None)) == []


def test_a_stream(data: Path) -> None:
    reader = KafkaLogDataSource({"path": str(data), "startingOffset": "1"}).streamReader(StructType())
    start, end = json.loads(json.dumps(reader.initialOffset())), json.loads(json.dumps(reader.latestOffset()))
    partitions = reader.partitions(start, end)
    worker = pickle.loads(pickle.dumps(reader))
    assert [part["offset"].to_pylist() for each in partitions for part in worker.read(each)] == [[1], [2]]
    assert list(worker.read(InputPartition(0))) == []


def test_headers_are_a_column_if_they_are_asked_for(data: Path) -> None:
    assert "headers array" not in KafkaLogDataSource({"path": str(data)}).schema()
    assert "headers array" in KafkaLogDataSource({"path": str(data), "includeHeaders": "true"}).schema()


def test_a_directory_that_is_not_there_is_an_error_of_load() -> None:
    with pytest.raises(KafkaLogError, match="there is no /nowhere on this machine"):
        KafkaLogDataSource({"path": "/nowhere"}).schema()
