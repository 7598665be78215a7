"""The committed batches of a partition, and how they are read out of a log."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.records.batch import RecordBatch, batches
from odradek.storage.segment.fetch_data import FetchIsolation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.log.unified_log import UnifiedLog

READ_BYTES = 1 << 20


class Violation(AssertionError):
    """Something has happened that must never happen."""


class Batch(NamedTuple):
    """A batch by its contents: two equal ones have the same bytes."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    data: bytes

    @classmethod
    def of(cls, batch: RecordBatch) -> Batch:
        data = bytes(batch.buffer[: batch.size_in_bytes])
        return cls(batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.crc, data)

    @property
    def values(self) -> tuple[bytes, ...]:
        batch = RecordBatch(memoryview(self.data))
        return () if batch.is_control else tuple(bytes(record.value or b"") for record in batch.records())

    def __str__(self) -> str:
        names = b",".join(self.values).decode()
        return f"[{self.base_offset}-{self.last_offset} epoch {self.leader_epoch}: {names}]"


class Committed:
    """The committed batches of one partition, for as long as its topic lives."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.name = str(topic_partition)
        self.batches: list[Batch] = []
        self._bases: list[int] = []

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def check(self, found: Iterable[Batch], who: str) -> None:
        """Compare these batches with the committed ones; those beyond the end become committed."""
        for batch in found:
            if batch.base_offset == self.end:
                self.batches.append(batch)
                self._bases.append(batch.base_offset)
                continue
            place = self.at(batch.base_offset)
            if place != batch:
                raise Violation(f"{self.name}: {who} has {batch} where {place} was committed (end {self.end})")

    def at(self, offset: int) -> Batch | None:
        index = bisect_right(self._bases, offset) - 1
        return self.batches[index] if index >= 0 and self.batches[index].last_offset >= offset else None

    def holds(self, offset: int, value: bytes) -> bool:
        batch = self.at(offset)
        return batch is not None and batch.values[offset - batch.base_offset] == value


def read(log: UnifiedLog, start: int, end: int) -> list[Batch]:
    """The batches from one offset to another (exclusive), which are batch boundaries."""
    found: list[Batch] = []
    while start < end:
        records = log.read(start, READ_BYTES, FetchIsolation.LOG_END, True).records
        data = records if isinstance(records, memoryview) else memoryview(records.read())
        before = start
        for batch in batches(data):
            if start <= batch.base_offset < end:
                found.append(Batch.of(batch))
                start = batch.last_offset + 1
        if start == before:
            raise Violation(f"{log.topic_partition}: nothing to read at {start}, end {end}, LEO {log.log_end_offset}")
    return found
