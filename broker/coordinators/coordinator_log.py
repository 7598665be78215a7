"""The log of a coordinator: appends to the partitions of an internal topic, and reads them back.

Kafka: GroupMetadataManager.appendForGroup, GroupMetadataManager.doLoadGroupsAndOffsets,
TransactionStateManager.appendTransactionToLog, TransactionStateManager.loadTransactionMetadata.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.machine.hot_reads import read_hot
from odradek.coordinator.runtime import BATCH_BYTES_MAX, log_left_out
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import LegacyBatch, RecordBatch, batches
from odradek.protocol.records.builder import IllegalBatchError, assemble_batch, build_batch
from odradek.protocol.records.errors import DecompressedSizeError
from odradek.protocol.records.layout import COMPRESSION_MASK, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from odradek.timer.sliced_work import Wait, waited_for

if TYPE_CHECKING:
    from odradek.broker.fetch.results import LogAppendResult
    from odradek.broker.partition.partition import Partition
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.coordinator.ports import OnCommitted, TransactionalProducer
    from odradek.storage.disk.ports import IoPool

_log = logging.getLogger(__name__)

_Built: TypeAlias = "bytearray | Exception"
_WaitingAppend: TypeAlias = (
    "tuple[Callable[[], bytearray], Callable[[_Built], None], OnCommitted, tuple[Partition, int] | None]"
)
"""What builds the batch, what appends it, what is called instead if the leadership is another one then."""

COMPRESSED_BYTES_MAX: Final = 128 * 1024
"""Of records that are compressed on the event loop: 5 ms with gzip, the slowest codec."""

OPENED_BYTES_MAX: Final = 1024
"""Of a compressed batch that a load opens on the event loop: zstd makes up to 10 MB of it."""


class InternalTopicLog:
    """The partitions of one internal topic. Implements the port `CoordinatorLog`.

    Appends to a partition keep their order, also where one waits until its records are compressed.

    `partition_count`: as in the port. `required_acks` and `timeout_ms` are those of appends. A load reads
    `load_buffer_bytes` at a time, or one larger batch.
    """

    def __init__(
        self,
        topic: str,
        *,
        partition_count: int,
        required_acks: int,
        timeout_ms: int,
        load_buffer_bytes: int,
        compression_type: int,
        replica_manager: ReplicaManager,
        io_pool: IoPool,
    ) -> None:
        self._topic = topic
        self.partition_count = partition_count
        self._required_acks = required_acks
        self._timeout_ms = timeout_ms
        self._load_buffer_bytes = load_buffer_bytes
        self._compression_type = compression_type
        self._replica_manager = replica_manager
        self._io_pool = io_pool
        self._waiting: dict[int, deque[_WaitingAppend]] = {}
        """Appends that wait for a large batch of their partition, which is the first and is being compressed."""

    def has_log(self, partition: int) -> bool:
        hosted = self._replica_manager.hosted(TopicPartition(self._topic, partition))
        return hosted is not None and hosted.log is not None

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
        size = sum(map(_size, records)) if self._compression_type else 0
        if size > BATCH_BYTES_MAX:  # could not be loaded
            on_committed(ErrorCode.MESSAGE_TOO_LARGE, -1)
            return
        build = partial(
            build_batch,
            records,
            compression_type=self._compression_type,
            producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
            producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.producer_epoch,
            base_sequence=base_sequence,
            is_transactional=producer is not None,
        )
        append = partial(
            self._append,
            TopicPartition(self._topic, partition),
            on_committed,
            None if producer is None else producer.verification_guard,
            self._required_acks if wait_for_replicas else 0,
            self._timeout_ms if timeout_ms is None else timeout_ms,
        )
        waiting = self._waiting.get(partition)
        if waiting is not None:
            waiting.append((build, append, on_committed, self._leadership(partition)))
        elif size > COMPRESSED_BYTES_MAX:
            self._waiting[partition] = deque([(build, append, on_committed, self._leadership(partition))])
            self._build_first(partition)
        else:
            append(_built(build))

    def _build_first(self, partition: int) -> None:
        """Build the first of the batches that wait in the I/O pool, append it, and go on with the next one.

        Small batches go through the pool, too: then each has a turn of the event loop for itself.
        """
        waiting = self._waiting[partition]
        build, append, on_committed, leadership = waiting[0]

        def done(batch: _Built) -> None:
            try:
                if leadership is not None and self._leadership(partition) == leadership:
                    append(batch)
                else:  # the state of the coordinator is loaded anew, without these records, or the broker stops
                    on_committed(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            finally:
                waiting.popleft()
                if waiting:
                    self._build_first(partition)
                else:
                    del self._waiting[partition]

        self._io_pool.submit(partial(_built, build), done)

    def _leadership(self, partition: int) -> tuple[Partition, int] | None:
        """The hosted partition and which of its leaderships it is, whatever the epoch; None if its log is closed."""
        hosted = self._replica_manager.hosted(TopicPartition(self._topic, partition))
        if hosted is None or hosted.log is None or hosted.log.is_closed:
            return None
        return hosted, hosted.leaderships

    def _append(
        self,
        topic_partition: TopicPartition,
        on_committed: OnCommitted,
        verification_guard: object | None,
        required_acks: int,
        timeout_ms: int,
        batch: _Built,
    ) -> None:
        if isinstance(batch, Exception):
            trace = None if isinstance(batch, IllegalBatchError) else batch
            _log.error("No batch for %s can be made: %s", topic_partition, batch, exc_info=trace)
            on_committed(ErrorCode.UNKNOWN_SERVER_ERROR, -1)
            return

        def respond(results: Mapping[TopicPartition, LogAppendResult]) -> None:
            result = results[topic_partition]
            on_committed(result.error, result.info.first_offset)

        self._replica_manager.append(
            timeout_ms=timeout_ms,
            required_acks=required_acks,
            internal_topics_allowed=True,
            origin=AppendOrigin.COORDINATOR,
            records={topic_partition: memoryview(batch)},
            verification_guards={} if verification_guard is None else {topic_partition: verification_guard},
            respond=respond,
        )

    def max_batch_bytes(self, partition: int) -> int | None:
        hosted = self._replica_manager.hosted(TopicPartition(self._topic, partition))
        return None if hosted is None or hosted.log is None else hosted.log.config.max_message_bytes

    def read_all(self, partition: int) -> Iterator[RecordBatch | LegacyBatch | Wait]:
        hosted = self._replica_manager.hosted(TopicPartition(self._topic, partition))
        log = None if hosted is None else hosted.log
        if log is None:
            return
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found = log.read(offset, self._load_buffer_bytes, FetchIsolation.LOG_END, min_one_message=True).records
            data = (yield from self._read(found)) if isinstance(found, FileRegion) else found
            before = offset
            for batch in batches(memoryview(data)):
                offset = batch.next_offset
                if isinstance(batch, RecordBatch) and batch.compression_type and len(batch.buffer) > OPENED_BYTES_MAX:
                    try:
                        batch = yield from self._decompressed(batch)
                    except DecompressedSizeError as error:
                        log_left_out(batch, error)
                        continue
                yield batch
            if offset == before:
                return

    def _read(self, region: FileRegion) -> Generator[Wait, None, bytes]:
        """The bytes of the region; read in the I/O pool if they are not in the page cache."""
        data = read_hot(region)
        if data is not None:
            return data

        def submit(done: Callable[[bytes | OSError], None]) -> None:
            region.hold()  # the thread needs the descriptor until it has read, even if the load is cancelled
            fd = region.fileno()

            def release(result: bytes | OSError) -> None:
                region.release()
                done(result)

            self._io_pool.submit(lambda: os.pread(fd, region.size_in_bytes, region.position), release)

        result = yield from waited_for(submit)
        if isinstance(result, OSError):
            raise result
        return result

    def _decompressed(self, batch: RecordBatch) -> Generator[Wait, None, RecordBatch]:
        """The batch with its records decompressed, in the I/O pool. Raises: CorruptRecordError."""

        def work() -> RecordBatch | Exception:
            try:
                return _without_compression(batch)
            except Exception as error:  # noqa: BLE001 - the load raises it
                return error

        def submit(done: Callable[[RecordBatch | Exception], None]) -> None:
            self._io_pool.submit(work, done)

        result = yield from waited_for(submit)
        if isinstance(result, RecordBatch):
            return result
        raise result


def _without_compression(batch: RecordBatch) -> RecordBatch:
    return RecordBatch(
        memoryview(
            assemble_batch(
                batch.record_bytes(BATCH_BYTES_MAX),
                record_count=batch.record_count,
                base_offset=batch.base_offset,
                last_offset_delta=batch.last_offset_delta,
                base_timestamp=batch.base_timestamp,
                max_timestamp=batch.max_timestamp,
                attributes=batch.attributes & ~COMPRESSION_MASK,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                partition_leader_epoch=batch.partition_leader_epoch,
            )
        )
    )


def _built(build: Callable[[], bytearray]) -> _Built:
    try:
        return build()
    except Exception as error:  # noqa: BLE001 - it is logged, and the append gets UNKNOWN_SERVER_ERROR
        return error


def _size(record: SimpleRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")
