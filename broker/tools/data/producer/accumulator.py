"""Collects records into batches, one queue of batches for each partition.

A batch is complete when it is full, when its linger time is over, or when everything is flushed. One batch of a
partition is under way at a time (`take` to `done` or `retry`), so retries keep the order. The first take gives a batch
its producer id and sequence; a retry sends the same bytes again.

Kafka: RecordAccumulator, ProducerBatch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.layout import BATCH_OVERHEAD, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition

MAX_RECORD_OVERHEAD: Final = 21
"""Bytes of a record besides key, value and headers. Kafka: DefaultRecord.MAX_RECORD_OVERHEAD."""

MAX_RECORDS_OF_A_BATCH: Final = 100_000
"""Bounds the objects of a batch of empty records."""


class Batch:
    """Records of one partition that are sent together."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "callbacks",
        "created_ms",
        "is_complete",
        "not_before_ms",
        "payload",
        "producer_epoch",
        "producer_id",
        "reason",
        "records",
        "size",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, created_ms: int, records: Iterable[SimpleRecord] = ()) -> None:
        self.topic_partition = topic_partition
        self.created_ms = created_ms
        """By the monotonic clock."""
        self.records = list(records)
        self.size = BATCH_OVERHEAD + sum(map(estimate, self.records))
        """An upper bound of the bytes without compression."""
        self.is_complete = False
        self.attempts = 0
        self.not_before_ms = 0
        """A retry waits until then."""
        self.reason = "its partition has no leader"
        """Why it is not written yet."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.payload: bytearray | None = None
        self.callbacks: list[Callable[[Batch, Exception | None], None]] = []

    def encoded(self, compression_type: int, level: int | None, *, is_transactional: bool) -> bytearray:
        """The bytes, the same for each attempt."""
        if self.payload is None:
            self.payload = build_batch(
                self.records,
                compression_type=compression_type,
                level=level,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
                is_transactional=is_transactional,
            )
        return self.payload

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches of the same records, for a broker that finds this one too large. They have no sequence yet."""
        middle = len(self.records) // 2
        first = Batch(self.topic_partition, self.created_ms, self.records[:middle])
        second = Batch(self.topic_partition, self.created_ms, self.records[middle:])
        first.is_complete = second.is_complete = True
        second.callbacks = self.callbacks
        return first, second


def estimate(record: SimpleRecord) -> int:
    """An upper bound of the bytes of a record in a batch."""
    size = MAX_RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += 10 + 4 * len(name) + len(value or b"")
    return size


def size_upper_bound(record: SimpleRecord) -> int:
    """The bytes of a batch of this record alone, at most. Kafka: AbstractRecords.estimateSizeInBytesUpperBound."""
    size = BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + _length(record.key) + _length(record.value)
    size += len(write_varint(len(record.headers)))
    for name, value in record.headers:
        size += _length(name.encode()) + _length(value)
    return size


def _length(data: bytes | None) -> int:
    """The bytes of a field, with its length before it."""
    return len(write_varint(-1)) if data is None else len(write_varint(len(data))) + len(data)


class RecordAccumulator:
    """Batches that wait, by partition."""

    def __init__(self, batch_size: int, linger_ms: int) -> None:
        self._batch_size = batch_size
        self._linger_ms = linger_ms
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self._under_way: set[TopicPartition] = set()
        self._flushing = False
        self.buffered_bytes = 0
        """Of all records that are not acknowledged."""

    def append(
        self,
        topic_partition: TopicPartition,
        record: SimpleRecord,
        now_ms: int,
        callback: Callable[[Batch, Exception | None], None] | None = None,
    ) -> bool:
        """Add a record. Returns whether this completed a batch. `callback` is called once, at the end of its batch."""
        size = estimate(record)
        queue = self._queues.setdefault(topic_partition, deque())
        completed = False
        batch = queue[-1] if queue else None
        if batch is not None and not batch.is_complete and batch.size + size > self._batch_size:
            batch.is_complete = completed = True
        if batch is None or batch.is_complete or batch.attempts:
            batch = Batch(topic_partition, now_ms)
            queue.append(batch)
        batch.records.append(record)
        batch.size += size
        self.buffered_bytes += size
        if callback is not None:
            batch.callbacks.append(callback)
        if batch.size >= self._batch_size or len(batch.records) >= MAX_RECORDS_OF_A_BATCH:
            batch.is_complete = completed = True
        return completed

    def ready(self, now_ms: int) -> Iterator[TopicPartition]:
        """Partitions whose first batch can be sent now."""
        for topic_partition, queue in self._queues.items():
            if queue and topic_partition not in self._under_way and self._delay_ms(queue[0], now_ms) <= 0:
                yield topic_partition

    def next_ready_ms(self, now_ms: int) -> int | None:
        """Milliseconds until another batch becomes ready by time alone; None without one."""
        delays = (
            self._delay_ms(queue[0], now_ms)
            for topic_partition, queue in self._queues.items()
            if queue and topic_partition not in self._under_way
        )
        return min((delay for delay in delays if delay > 0), default=None)

    def _delay_ms(self, batch: Batch, now_ms: int) -> int:
        is_due = batch.is_complete or self._flushing or batch.attempts
        ready_ms = batch.not_before_ms if is_due else batch.created_ms + self._linger_ms
        return max(ready_ms, batch.not_before_ms) - now_ms

    def peek(self, topic_partition: TopicPartition) -> Batch:
        """The batch that `take` would return."""
        return self._queues[topic_partition][0]

    def take(self, topic_partition: TopicPartition) -> Batch:
        """The first batch of a ready partition. No other of the partition is ready until `done` or `retry`."""
        batch = self._queues[topic_partition].popleft()
        batch.is_complete = True
        batch.attempts += 1
        self._under_way.add(topic_partition)
        return batch

    def retry(self, batch: Batch, not_before_ms: int) -> None:
        """Put a batch that was taken back to the front of its queue."""
        batch.not_before_ms = not_before_ms
        self._under_way.discard(batch.topic_partition)
        self._queues[batch.topic_partition].appendleft(batch)

    def split(self, batch: Batch) -> None:
        """Replace a batch that was taken by its halves."""
        first, second = batch.halves()
        self._under_way.discard(batch.topic_partition)
        self._queues[batch.topic_partition].extendleft((second, first))

    def done(self, batch: Batch, error: Exception | None) -> None:
        """A batch that was taken is acknowledged or has failed."""
        self._under_way.discard(batch.topic_partition)
        self._finish(batch, error)

    def drop_waiting(self, error: Exception) -> None:
        """Remove all batches that are not under way: their transaction is aborted."""
        for queue in self._queues.values():
            while queue:
                self._finish(queue.popleft(), error)

    def _finish(self, batch: Batch, error: Exception | None) -> None:
        self.buffered_bytes -= batch.size - BATCH_OVERHEAD
        for callback in batch.callbacks:
            callback(batch, error)

    def flush(self) -> None:
        """Make all batches ready, until `end_flush`."""
        self._flushing = True

    def end_flush(self) -> None:
        self._flushing = False

    @property
    def is_empty(self) -> bool:
        """Whether no record waits or is under way."""
        return not self._under_way and not any(self._queues.values())

    @property
    def is_idle(self) -> bool:
        """Whether no batch is under way."""
        return not self._under_way
