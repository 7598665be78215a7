from __future__ import annotations

from odradek.broker.tools.data.producer.accumulator import Batch, RecordAccumulator, estimate
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.layout import BATCH_OVERHEAD
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def record(value: bytes = b"v" * 79) -> SimpleRecord:
    """100 bytes by the estimate, if not told otherwise."""
    return SimpleRecord(1, None, value)


def ready(accumulator: RecordAccumulator, now_ms: int) -> list[TopicPartition]:
    return list(accumulator.ready(now_ms))


def test_a_batch_is_ready_when_its_linger_is_over() -> None:
    accumulator = RecordAccumulator(1000, linger_ms=5)
    accumulator.append(A, record(), 10)
    accumulator.append(A, record(), 14)
    assert ready(accumulator, 14) == []
    assert accumulator.next_ready_ms(14) == 1
    assert ready(accumulator, 15) == [A]
    assert len(accumulator.take(A).records) == 2


def test_a_full_batch_is_ready_at_once_and_the_next_record_begins_another() -> None:
    accumulator = RecordAccumulator(BATCH_OVERHEAD + 200, linger_ms=5)
    assert not accumulator.append(A, record(), 0)
    assert accumulator.append(A, record(), 0), "full to the byte"
    assert ready(accumulator, 0) == [A]
    accumulator.append(A, record(), 0)
    assert len(accumulator.take(A).records) == 2


def test_a_record_that_does_not_fit_completes_the_batch_before_it() -> None:
    accumulator = RecordAccumulator(BATCH_OVERHEAD + 150, linger_ms=5)
    accumulator.append(A, record(), 0)
    assert accumulator.append(A, record(), 0)
    assert ready(accumulator, 0) == [A]


def test_a_record_larger_than_a_batch_is_a_batch() -> None:
    accumulator = RecordAccumulator(10, linger_ms=5)
    assert accumulator.append(A, record(b"x" * 10_000), 0)
    assert len(accumulator.take(A).records) == 1


def test_one_batch_of_a_partition_is_under_way() -> None:
    accumulator = RecordAccumulator(10, linger_ms=0)
    for _ in range(2):
        accumulator.append(A, record(), 0)
    accumulator.append(B, record(), 0)
    first = accumulator.take(A)
    assert ready(accumulator, 0) == [B]
    accumulator.done(first, None)
    assert ready(accumulator, 0) == [A, B]


def test_a_retry_comes_before_later_batches_and_waits() -> None:
    accumulator = RecordAccumulator(10, linger_ms=0)
    accumulator.append(A, record(b"1"), 0)
    accumulator.append(A, record(b"2"), 0)
    first = accumulator.take(A)
    accumulator.retry(first, not_before_ms=50)
    assert ready(accumulator, 49) == []
    assert accumulator.next_ready_ms(49) == 1
    assert ready(accumulator, 50) == [A]
    assert accumulator.peek(A) is first
    accumulator.append(A, record(b"3"), 50)
    assert [found.value for found in accumulator.take(A).records] == [b"1"], "a batch that was sent never grows"


def test_flush_makes_everything_ready_until_it_ends() -> None:
    accumulator = RecordAccumulator(1000, linger_ms=1000)
    accumulator.append(A, record(), 0)
    accumulator.flush()
    assert ready(accumulator, 0) == [A]
    accumulator.end_flush()
    assert ready(accumulator, 0) == []
    assert not accumulator.is_empty
    batch = accumulator.take(A)
    assert not accumulator.is_idle
    accumulator.done(batch, None)
    assert accumulator.is_empty
    assert accumulator.is_idle


def test_bytes_in_memory_and_callbacks() -> None:
    seen: list[Exception | None] = []
    accumulator = RecordAccumulator(10, linger_ms=0)
    for _ in range(2):
        accumulator.append(A, record(), 0, lambda batch, error: seen.append(error))
    assert accumulator.buffered_bytes == 200
    accumulator.done(accumulator.take(A), None)
    assert (accumulator.buffered_bytes, seen) == (100, [None])
    failure = RuntimeError()
    accumulator.drop_waiting(failure)
    assert (accumulator.buffered_bytes, seen) == (0, [None, failure])
    assert accumulator.is_empty


def test_a_batch_that_is_too_large_is_split_in_order() -> None:
    seen: list[Batch] = []
    accumulator = RecordAccumulator(1000, linger_ms=0)
    for value in (b"1", b"2", b"3"):
        accumulator.append(A, record(value), 0, lambda batch, error: seen.append(batch))
    before = accumulator.buffered_bytes
    accumulator.split(accumulator.take(A))
    assert accumulator.buffered_bytes == before
    halves = []
    for _ in range(2):
        halves.append(accumulator.take(A))
        accumulator.done(halves[-1], None)
    assert [[found.value for found in half.records] for half in halves] == [[b"1"], [b"2", b"3"]]
    assert accumulator.buffered_bytes == 0
    assert seen == [halves[1]] * 3, "the callbacks come when all of it is written"


def test_the_bytes_of_a_retry_are_the_same() -> None:
    batch = Batch(A, 0, [record()])
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 5, 1, 9
    payload = batch.encoded(0, None, is_transactional=True)
    batch.records.append(record())
    assert batch.encoded(0, None, is_transactional=True) is payload
    view = RecordBatch(memoryview(payload))
    assert (view.producer_id, view.producer_epoch, view.base_sequence, view.is_transactional) == (5, 1, 9, True)


def test_the_estimate_is_an_upper_bound() -> None:
    full = SimpleRecord(1, b"k" * 300, b"v" * 70_000, (("ä" * 200, b"x"), ("n", None)))
    batch = Batch(A, 0, [full])
    assert len(batch.encoded(0, None, is_transactional=False)) <= BATCH_OVERHEAD + estimate(full)
