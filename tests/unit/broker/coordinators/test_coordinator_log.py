"""The coordinator's log over a partition of its topic."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.broker.coordinators import coordinator_log
from odradek.broker.coordinators.coordinator_log import InternalTopicLog
from odradek.coordinator.ports import OFFSETS_SEQUENCE, TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import Wait
from tests.support.disks.logs import NOW, DeferredIoPool
from tests.support.in_process.replication.replicas import Replicas

TOPIC = "__consumer_offsets"
TP = TopicPartition(TOPIC, 0)
NONE = ErrorCode.NONE


class Log:
    def __init__(
        self, path: Path, *, load_buffer_bytes: int = 1 << 20, required_acks: int = -1, compression_type: int = 0
    ) -> None:
        self.replicas = Replicas(path)
        self.io_pool = DeferredIoPool()
        self.log = InternalTopicLog(
            TOPIC,
            partition_count=50,
            required_acks=required_acks,
            timeout_ms=1_000,
            load_buffer_bytes=load_buffer_bytes,
            compression_type=compression_type,
            replica_manager=self.replicas.manager,
            io_pool=self.io_pool,
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
        """The loaded batches; each read from the disk is done as soon as the load waits for it."""
        values = []
        for batch in self.log.read_all(0):
            if isinstance(batch, Wait):
                batch.begin(lambda: None)
                self.io_pool.run_all()
            else:
                values += [bytes(record.value or b"") for record in batch.records()]
        return values


def test_appended_records_are_read_back(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    assert log.append(b"a", b"b") == [(NONE, 0)]
    assert log.append(b"c") == [(NONE, 2)]
    assert log.values() == [b"a", b"b", b"c"]


def test_a_producer_that_no_batch_can_have_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    for producer in (TransactionalProducer(-1, 0), TransactionalProducer(7, -1)):
        assert log.append(b"a", producer=producer, base_sequence=OFFSETS_SEQUENCE) == [
            (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
        ]
    assert log.values() == []


def test_what_could_not_be_loaded_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_log, "BATCH_BYTES_MAX", 2_000)
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    assert log.append(b"a" * 999, b"b" * 999) == [(NONE, 0)]
    assert log.append(b"a" * 999, b"b" * 1_000) == [(ErrorCode.MESSAGE_TOO_LARGE, -1)]
    assert log.values() == [b"a" * 999, b"b" * 999]


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


LARGE = b"a" * (coordinator_log.COMPRESSED_BYTES_MAX + 1)


def test_a_large_batch_is_compressed_in_the_pool_and_those_behind_it_keep_their_order(tmp_path: Path) -> None:
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    assert log.append(LARGE[2:]) == [(NONE, 0)]
    answers = [log.append(value) for value in (LARGE, b"b", LARGE + b"c")]
    answers.append(log.append(b"d", producer=TransactionalProducer(-1, 0), base_sequence=OFFSETS_SEQUENCE))
    assert answers == [[], [], [], []]
    log.io_pool.run_one()
    assert answers == [[(NONE, 1)], [], [], []]
    log.io_pool.run_all()
    assert answers == [[(NONE, 1)], [(NONE, 2)], [(NONE, 3)], [(ErrorCode.UNKNOWN_SERVER_ERROR, -1)]]
    assert log.append(b"e") == [(NONE, 4)], "none waits any more"
    assert log.values() == [LARGE[2:], LARGE, b"b", LARGE + b"c", b"e"]


def test_an_append_from_an_answer_is_behind_those_that_wait(tmp_path: Path) -> None:
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)

    def committed(error: ErrorCode, offset: int) -> None:
        log.append(b"last")

    log.log.append(0, [SimpleRecord(NOW, b"k", LARGE)], committed)
    log.append(b"waits")
    log.io_pool.run_all()
    assert log.values() == [LARGE, b"waits", b"last"]


def test_what_waits_is_refused_when_the_leadership_is_another_one(tmp_path: Path) -> None:
    """The coordinator has loaded the partition anew, without it."""
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    answers = [log.append(LARGE), log.append(b"b")]
    log.replicas.follow(TP, epoch=1, partition_epoch=1, is_new=False)
    log.replicas.lead(TP, epoch=2, partition_epoch=2, is_new=False)
    new = log.append(b"new")
    log.io_pool.run_all()
    assert answers == [[(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]] * 2
    assert new == [(NONE, 0)]
    assert log.values() == [b"new"]


def test_what_waits_is_appended_in_a_new_epoch_of_the_same_leader(tmp_path: Path) -> None:
    """As when another replica's broker stops: the coordinator keeps its state, so nothing loads it anew."""
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    answers = [log.append(LARGE), log.append(b"b")]
    log.replicas.lead(TP, epoch=1, partition_epoch=1, is_new=False)
    log.io_pool.run_all()
    assert answers == [[(NONE, 0)], [(NONE, 1)]]


def test_nothing_is_written_into_a_closed_log(tmp_path: Path) -> None:
    """A stop closes the logs before the threads of the pool end."""
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    answers = [log.append(LARGE), log.append(b"b")]
    hosted = log.replicas.manager.partition(TP).log
    assert hosted is not None
    hosted.close()
    log.io_pool.run_all()
    assert answers == [[(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]] * 2
    assert hosted.log_end_offset == 0


def test_a_batch_that_cannot_be_made_holds_back_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    with monkeypatch.context() as patched:

        def fail(*_: object, **__: object) -> bytearray:
            raise MemoryError

        patched.setattr(coordinator_log, "build_batch", fail)
        answers = [log.append(LARGE)]
    answers.append(log.append(b"b"))
    log.io_pool.run_all()
    assert answers == [[(ErrorCode.UNKNOWN_SERVER_ERROR, -1)], [(NONE, 0)]]
    assert "MemoryError" in caplog.text


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_a_large_compressed_batch_is_opened_in_the_pool(codec: CompressionType, tmp_path: Path) -> None:
    log = Log(tmp_path, compression_type=codec)
    log.replicas.lead(TP)
    large = random.Random(1).randbytes(2 * coordinator_log.OPENED_BYTES_MAX)
    log.append(b"small")
    log.append(large, b"b", producer=TransactionalProducer(7, 3), base_sequence=OFFSETS_SEQUENCE)
    assert not log.io_pool.pending
    found = log.log.read_all(0)
    assert isinstance(next(found), RecordBatch)
    wait = next(found)
    assert isinstance(wait, Wait)
    wait.begin(lambda: None)
    assert log.io_pool.run_all() == 1
    opened = next(found)
    assert isinstance(opened, RecordBatch)
    assert opened.is_valid()
    assert (opened.compression_type, opened.is_transactional) == (0, True)
    assert (opened.producer_id, opened.producer_epoch, opened.last_offset) == (7, 3, 2)
    assert [record.value for record in opened.records()] == [large, b"b"]
    assert [record.offset for record in opened.records()] == [1, 2]
    assert next(found, None) is None


def test_a_large_batch_that_becomes_too_large_is_left_out_and_what_follows_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    log.append(random.Random(1).randbytes(5_000))
    log.append(b"after")
    monkeypatch.setattr(coordinator_log, "BATCH_BYTES_MAX", 4_000)
    assert log.values() == [b"after"]
    assert caplog.messages == ["The batch at offset 0 is not loaded: gzip: more than 4000 bytes"]


@pytest.mark.parametrize("error", [CorruptRecordError("the records"), MemoryError("the records")])
def test_a_large_batch_that_cannot_be_opened_ends_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    log = Log(tmp_path, compression_type=CompressionType.GZIP)
    log.replicas.lead(TP)
    log.append(random.Random(1).randbytes(5_000))

    def fail(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(RecordBatch, "record_bytes", fail)
    with pytest.raises(type(error), match="the records"):
        log.values()


@pytest.fixture
def cold_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the page cache."""
    monkeypatch.setattr("odradek.broker.coordinators.coordinator_log.read_hot", lambda region: None)


@pytest.mark.usefixtures("cold_disk")
def test_what_is_not_in_memory_is_read_in_the_pool_a_piece_at_a_time(tmp_path: Path) -> None:
    log = Log(tmp_path, load_buffer_bytes=100)
    log.replicas.lead(TP)
    for number in range(5):
        log.append(b"v%d" % number)
    found = log.log.read_all(0)
    wait = next(found)
    assert isinstance(wait, Wait)
    ends: list[None] = []
    wait.begin(lambda: ends.append(None))
    assert (len(log.io_pool.pending), ends) == (1, [])
    log.io_pool.run_one()
    assert len(ends) == 1
    assert isinstance(next(found), RecordBatch)
    assert not log.io_pool.pending, "the next piece is read when this one is used up"
    assert log.values() == [b"v%d" % number for number in range(5)]


@pytest.mark.usefixtures("cold_disk")
def test_a_load_that_is_given_up_leaves_the_file_to_the_thread_that_reads_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    log.append(b"a")
    found = log.log.read_all(0)
    wait = next(found)
    assert isinstance(wait, Wait)
    wait.begin(lambda: None)
    found.close()  # type: ignore[attr-defined]
    hosted = log.replicas.manager.partition(TP).log
    assert hosted is not None
    records = hosted.segments.active.records
    assert not records.evict(), "its descriptor is being read from"
    log.io_pool.run_all()
    assert records.evict()


@pytest.mark.usefixtures("cold_disk")
def test_a_disk_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path)
    log.replicas.lead(TP)
    log.append(b"a")

    found = log.log.read_all(0)
    wait = next(found)
    assert isinstance(wait, Wait)
    wait.begin(lambda: None)

    def fail(*_: object) -> bytes:
        raise OSError("the disk")

    monkeypatch.setattr("odradek.broker.coordinators.coordinator_log.os.pread", fail)
    log.io_pool.run_all()
    with pytest.raises(OSError, match="the disk"):
        next(found)


def test_partition_that_is_not_hosted_has_no_records_and_takes_none(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert not log.log.has_log(0)
    assert log.log.max_batch_bytes(0) is None
    assert log.values() == []
    assert log.append(b"a") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_commit_is_answered_when_the_replicas_have_it(tmp_path: Path) -> None:
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
    assert log.append(b"a", producer=producer, base_sequence=OFFSETS_SEQUENCE) == [(NONE, 0)]
    (batch,) = log.log.read_all(0)
    assert isinstance(batch, RecordBatch)
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 2, 0)
