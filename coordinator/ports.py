"""Ports of the coordinators: the interfaces that the broker implements for them.

A coordinator keeps its state in an internal topic and serves from memory. It uses no socket, replica or file: it gives
records to a `CoordinatorLog`, which calls back on the same thread when they are committed or have failed. The broker
implements the ports over its ReplicaManager and metadata tree; tests implement them over a list of batches.

Rules of every port: a callback runs on the thread that owns the coordinator, exactly once, and may run before the call
returns.

Kafka: ReplicaManager.appendRecords, ReplicaManager.getMagic, KafkaZkClient.setOrCreateConsumerOffset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import AnyBatch
from odradek.protocol.records.layout import NO_SEQUENCE
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import Wait

ResponseT = TypeVar("ResponseT")

Respond: TypeAlias = Callable[[ResponseT], None]
"""Answers a request, exactly once, now or later."""

OnCommitted: TypeAlias = Callable[[ErrorCode, int], None]
"""Outcome of an append: the replica manager's error (not yet mapped for clients) and the batch's base offset."""


BATCH_OVERHEAD_BYTES: Final = 61
TOMBSTONE_OVERHEAD_BYTES: Final = 21
"""Upper bound: the lengths, deltas and attributes of a record without a value, in a batch of BATCH_OVERHEAD_BYTES."""


OFFSETS_SEQUENCE: Final = 0
"""Base sequence of every batch of offsets, with a producer or without: transactional ones are not deduplicated, either.

Kafka: GroupMetadataManager.storeOffsets.
"""


class TransactionalProducer(NamedTuple):
    """Makes an append part of a producer's open transaction. `verification_guard` comes from `TransactionVerifier`."""

    producer_id: int
    producer_epoch: int
    verification_guard: object | None = None


OnVerified: TypeAlias = Callable[[ErrorCode, object | None], None]
"""The error and the guard the append must carry (None if its transaction is already open in the log)."""


class TransactionVerifier(Protocol):
    """Asks the transaction coordinator whether a partition belongs to a producer's transaction (KIP-890)."""

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
        """Verify a partition of the coordinator's topic. `knows_abortable_error`: the client's version knows
        TRANSACTION_ABORTABLE.
        """
        ...


ProducerIds: TypeAlias = Callable[[Callable[[int | ErrorCode], None]], None]
"""Calls back with a new producer id, or with the error for the client."""


class CoordinatorLog(Protocol):
    """One internal topic: a log for each partition. This broker leads some of them."""

    @property
    def partition_count(self) -> int:
        """Partitions of the internal topic if it existed at the start of the broker, else the number it would be
        created with.

        Never changes, even if partitions are added: the hash would map existing groups and transactional ids to other
        partitions.
        """
        ...

    def has_log(self, partition: int) -> bool:
        """Whether this broker holds an online replica of the partition. Kafka: ReplicaManager.getMagic."""
        ...

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
        """Append the records as one batch, as the partition's leader.

        Calls back when the acks configured for the coordinator's topic have arrived, after `timeout_ms` with
        REQUEST_TIMED_OUT (None: the coordinator's configured timeout), or at once with the error that refused the
        append: UNKNOWN_SERVER_ERROR for a producer that no batch can have. Without `wait_for_replicas` the leader's own
        append is enough.
        """
        ...

    def max_batch_bytes(self, partition: int) -> int | None:
        """The largest batch the log takes (`max.message.bytes`); None if there is no log here."""
        ...

    def read_all(self, partition: int) -> Iterator[AnyBatch | Wait]:
        """Every batch from the log start to the log end, read lazily and in pieces; empty if there is no log.

        Where a piece must be read from the disk, a `Wait` for it is yielded before its batches. The caller uses a batch
        before it takes the next one, so the buffer may be reused. Raises KafkaError, CorruptRecordError or OSError.
        """
        ...


class ConsumerOffsetTree(Protocol):
    """The znodes of OffsetCommit and OffsetFetch version 0: /consumers/<group>/offsets/<topic>/<partition>.

    The value is the offset in decimal. Kafka: KafkaZkClient.setOrCreateConsumerOffset, getConsumerOffset.
    """

    def set_or_create(
        self, group_id: str, topic_partition: TopicPartition, offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        """Write the offset and create missing parents."""
        ...

    def get(
        self, group_id: str, topic_partition: TopicPartition, done: Callable[[ErrorCode, int | None], None]
    ) -> None:
        """Read the offset; None if there is none."""
        ...
