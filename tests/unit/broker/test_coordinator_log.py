"""The coordinator's log over a partition of its topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.coordinator_log import InternalTopicLog
from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from tests.support.logs import NOW
from tests.support.replicas import Replicas

TOPIC = "__consumer_offsets"
TP = TopicPartition(TOPIC, 0)
NONE = ErrorCode.NONE


class Log:
    def __init__(self, path: Path, *, load_buffer_bytes: int = 1 << 20, required_acks: int = -1) -> None:
        self.replicas = Replicas(path)
        self.log = InternalTopicLog(
            TOPIC,
            configured_partition_count=50,
            required_acks=required_acks,
            timeout_ms=1_000,
            load_buffer_bytes=load_buffer_bytes,
            compression_type=0,
            replica_manager=self.replicas.manager,
            metadata_cache=self.replicas.cache,
        )

    def append(self, *values: bytes, **options: object) -> list[tuple[ErrorCode, int]]:
        committed: list[tuple[ErrorCode, int]] = []
        self.log.append(
            0,
            [SimpleRecord(NOW, b"k", value) for value in values],
            lambda error, offset: committed.append((error, offset)),
            **options,  # type: ignore[arg-type]
        )
        return committed

    def values(self) -> list[bytes]:
        return [bytes(record.value or b"") for batch in self.log.read_all(0) for record in batch.records()]


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    assert log.append(b"a", b"b") == [(NONE, 0)]
    assert log.append(b"c") == [(NONE, 2)]
    assert log.values() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("load_buffer_bytes", [1, 100, 200])
def test_loading_goes_on_over_small_buffers_and_segments(tmp_path: Path, load_buffer_bytes: int) -> None:
    log = Log(tmp_path, load_buffer_bytes=load_buffer_bytes)
    log.replicas.lead(TP)
    for number in range(20):
        log.append(b"v%d" % number)
        if number % 5 == 0:
            hosted = log.replicas.manager.partition(TP).log
            assert hosted is not None
            hosted.roll()
    assert log.values() == [b"v%d" % number for number in range(20)]


def test_partition_that_is_not_hosted_has_no_records_and_takes_none(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert not log.log.has_log(0)
    assert log.log.max_batch_bytes(0) is None
    assert log.values() == []
    assert log.append(b"a") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_commit_is_told_when_the_replicas_have_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP, replicas=[0, 1])
    committed = log.append(b"a")
    assert committed == []
    assert log.append(b"b", wait_for_replicas=False) == [(NONE, 1)]
    log.replicas.fetch(2, TP, replica_id=1)
    assert committed == [(NONE, 0)]


def test_commit_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP, replicas=[0, 1])
    committed = log.append(b"a")
    log.replicas.advance(1_001)
    assert [error for error, _ in committed] == [ErrorCode.REQUEST_TIMED_OUT]


def test_an_append_may_have_a_time_of_its_own(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP, replicas=[0, 1])
    committed = log.append(b"a", timeout_ms=5_000)
    log.replicas.advance(4_999)
    assert committed == []
    log.replicas.advance(2)
    assert [error for error, _ in committed] == [ErrorCode.REQUEST_TIMED_OUT]


def test_the_largest_batch_is_the_topics(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    assert log.log.max_batch_bytes(0) == 1_048_588


def test_transactional_offsets_carry_their_producer(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    producer = TransactionalProducer(producer_id=5, producer_epoch=2)
    assert log.append(b"a", producer=producer) == [(NONE, 0)]
    (batch,) = log.log.read_all(0)
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 2, 0)


def test_number_of_partitions_is_fixed_once_the_topic_is_known(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.log.partition_count == 50
    log.replicas.lead(TP)
    assert log.log.partition_count == 1
    log.replicas.lead(TopicPartition(TOPIC, 1))
    assert log.log.partition_count == 1
