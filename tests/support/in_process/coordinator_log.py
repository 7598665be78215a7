"""The ports of the coordinators over a list of real batches: what is appended is encoded, and reloaded from the
bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from odradek.coordinator.ports import OnCommitted, OnVerified, TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import RecordBatch, assign_prefix, view_batch
from odradek.protocol.records.builder import IllegalBatchError, build_batch
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from odradek.protocol.records.layout import NO_SEQUENCE
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition


class InMemoryCoordinatorLog:
    """A `CoordinatorLog`. Appends commit at once, or when `release` is called while `hold` is on, or fail with
    `error`.
    """

    def __init__(self, partition_count: int = 50) -> None:
        self.partition_count = partition_count
        self.batches: dict[int, list[bytearray]] = {}
        self.hold = False
        self.error = ErrorCode.NONE
        self.max_bytes = 1_000_000
        self.missing: set[int] = set()
        self._end_offsets: dict[int, int] = {}
        self._waiting: deque[tuple[OnCommitted, int]] = deque()

    def has_log(self, partition: int) -> bool:
        return partition not in self.missing

    def append(
        self,
        partition: int,
        records: Sequence[SimpleRecord],
        on_committed: OnCommitted,
        *,
        producer: TransactionalProducer | None = None,
        base_sequence: int = NO_SEQUENCE,
        wait_for_replicas: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        assert records
        if self.error != ErrorCode.NONE:
            on_committed(self.error, -1)
            return
        try:
            batch = build_batch(
                records,
                producer_id=-1 if producer is None else producer.producer_id,
                producer_epoch=-1 if producer is None else producer.producer_epoch,
                base_sequence=base_sequence,
                is_transactional=producer is not None,
            )
        except IllegalBatchError:
            on_committed(ErrorCode.UNKNOWN_SERVER_ERROR, -1)
            return
        base_offset = self.append_batch(partition, batch, len(records))
        if self.hold and wait_for_replicas:
            self._waiting.append((on_committed, base_offset))
        else:
            on_committed(ErrorCode.NONE, base_offset)

    def max_batch_bytes(self, partition: int) -> int | None:
        return self.max_bytes if self.has_log(partition) else None

    def append_batch(self, partition: int, batch: bytearray, count: int) -> int:
        base_offset = self._end_offsets.get(partition, 0)
        assign_prefix(batch, base_offset, 0)
        self.batches.setdefault(partition, []).append(batch)
        self._end_offsets[partition] = base_offset + count
        return base_offset

    def append_marker(self, partition: int, producer: TransactionalProducer, *, commit: bool) -> None:
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        marker = EndTransactionMarker(type=kind, coordinator_epoch=0)
        batch = build_end_transaction_batch(
            marker, timestamp=0, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
        )
        self.append_batch(partition, bytearray(batch), 1)

    def release(self, error: ErrorCode = ErrorCode.NONE, count: int | None = None) -> int:
        """Commit what is held back, or fail it; the oldest `count` appends only, if given."""
        released = 0
        while self._waiting and released != count:
            on_committed, base_offset = self._waiting.popleft()
            on_committed(error, base_offset if error == ErrorCode.NONE else -1)
            released += 1
        return released

    def forget_waiting(self) -> None:
        """Drop the callbacks of these appends; the records are in the log."""
        self._waiting.clear()

    @property
    def held_count(self) -> int:
        return len(self._waiting)

    def read_all(self, partition: int) -> Iterator[RecordBatch]:
        for batch in self.batches.get(partition, []):
            view = view_batch(memoryview(bytes(batch)))
            assert isinstance(view, RecordBatch)
            yield view


class FakeTransactionVerifier:
    """A `TransactionVerifier` that confirms everything, or answers `error`."""

    def __init__(self) -> None:
        self.error = ErrorCode.NONE
        self.asked: list[tuple[int, str, int, int, bool]] = []

    def __call__(
        self,
        partition: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        on_verified: OnVerified,
        *,
        knows_abortable_error: bool,
    ) -> None:
        self.asked.append((partition, transactional_id, producer_id, producer_epoch, knows_abortable_error))
        on_verified(self.error, None)


class InMemoryConsumerOffsetTree:
    """A `ConsumerOffsetTree`. With `hold` on, operations wait for `release`."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, TopicPartition], int] = {}
        self.hold = False
        self._waiting: list[Callable[[], None]] = []

    def set_or_create(
        self, group_id: str, topic_partition: TopicPartition, offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        def operation() -> None:
            self.offsets[group_id, topic_partition] = offset
            done(ErrorCode.NONE)

        self._run(operation)

    def get(
        self, group_id: str, topic_partition: TopicPartition, done: Callable[[ErrorCode, int | None], None]
    ) -> None:
        self._run(lambda: done(ErrorCode.NONE, self.offsets.get((group_id, topic_partition))))

    @property
    def waiting(self) -> int:
        """The operations that wait."""
        return len(self._waiting)

    def release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for operation in waiting:
            operation()

    def _run(self, operation: Callable[[], None]) -> None:
        if self.hold:
            self._waiting.append(operation)
        else:
            operation()
