"""What a coordinator needs from the broker around it.

A coordinator keeps its state in an internal topic and serves from memory. It never sees a socket, a replica or a
file: it hands records to a `CoordinatorLog` and learns later, on the same thread, whether they were committed. The
broker implements these ports (Kafka: the calls of GroupMetadataManager and TransactionStateManager into
ReplicaManager, and the few of KafkaApis into KafkaZkClient); tests implement them over a list of batches.

Rules of every port: callbacks run on the thread that owns the coordinator, exactly once, and may run before the call
returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import AnyBatch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import Wait

ResponseT = TypeVar("ResponseT")

Respond: TypeAlias = Callable[[ResponseT], None]
"""Answers a request, exactly once, now or later."""

OnCommitted: TypeAlias = Callable[[ErrorCode, int], None]
"""Outcome of an append: the error as the replica manager has it (not yet mapped for clients) and the batch's base
offset.
"""


BATCH_OVERHEAD_BYTES: Final = 61
TOMBSTONE_OVERHEAD_BYTES: Final = 21
"""At most: the lengths, deltas and attributes of a record without a value, in a batch of that overhead."""


class TransactionalProducer(NamedTuple):
    """Makes an append part of a producer's open transaction. `verification_guard`: what `TransactionVerifier` gave."""

    producer_id: int
    producer_epoch: int
    verification_guard: object | None = None


OnVerified: TypeAlias = Callable[[ErrorCode, object | None], None]
"""The error, or the guard an append has to present (None if it needs none: its transaction is open in the log)."""


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
        """Verify a partition of the coordinator's topic. `knows_abortable_error`: the client may be told
        TRANSACTION_ABORTABLE.
        """
        ...


ProducerIds: TypeAlias = Callable[[Callable[[int | ErrorCode], None]], None]
"""Gives a fresh producer id to the callback, or the error for the client."""


class CoordinatorLog(Protocol):
    """One internal topic, seen as numbered logs of which this broker leads some."""

    @property
    def partition_count(self) -> int:
        """Partitions of the internal topic if it exists, else the number it would be created with.

        Does not change any more once the topic is known to exist, whatever is done to the topic: groups and
        transactions would be looked for where they are not.
        """
        ...

    def has_log(self, partition: int) -> bool:
        """Whether this broker holds a replica of the partition, online (Kafka: `ReplicaManager.getMagic`)."""
        ...

    def append(
        self,
        partition: int,
        records: Sequence[SimpleRecord],
        on_committed: OnCommitted,
        *,
        producer: TransactionalProducer | None = None,
        wait_for_replicas: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Append the records as one batch, as the partition's leader.

        Calls back when the acks the topic's coordinator asks for are there, or the time is up (REQUEST_TIMED_OUT;
        `timeout_ms`, None: the coordinator's own), or at once with the error that refused the append. Without
        `wait_for_replicas` the leader's own append is enough.
        """
        ...

    def max_batch_bytes(self, partition: int) -> int | None:
        """The largest batch the log takes (`max.message.bytes`); None if there is no log here."""
        ...

    def read_all(self, partition: int) -> Iterator[AnyBatch | Wait]:
        """Every batch from the log start to the log end, read lazily and in pieces; empty if there is no log.

        Where a piece has to come from the disk, the `Wait` for it comes before its batches. A batch is used before the
        next is asked for, so its buffer may be reused. Raises KafkaError, CorruptRecordError or OSError.
        """
        ...


class ConsumerOffsetTree(Protocol):
    """Where OffsetCommit and OffsetFetch version 0 keep offsets: /consumers/<group>/offsets/<topic>/<partition>.

    The value is the offset in decimal (Kafka: KafkaZkClient.setOrCreateConsumerOffset and getConsumerOffset).
    """

    def set_or_create(
        self, group_id: str, topic_partition: TopicPartition, offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        """Store the offset, creating parents as needed."""
        ...

    def get(
        self, group_id: str, topic_partition: TopicPartition, done: Callable[[ErrorCode, int | None], None]
    ) -> None:
        """Read the offset; None if there is none."""
        ...
