"""Producer id, epoch and sequence numbers of an idempotent producer (KIP-98).

A batch gets its stamp once and keeps it in retries, so that a broker recognises a batch it already has. After an error
that a sequence cannot survive (the broker lost the producer's state), a new id is used: each partition begins again at
sequence 0 with its next batch that has no stamp.

Kafka: TransactionManager, TxnPartitionMap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.records.layout import MAX_INT32, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

if TYPE_CHECKING:
    from odradek.broker.tools.data.producer.accumulator import Batch
    from odradek.protocol.topic_partition import TopicPartition


class ProducerState:
    """The present id, and the next sequence number of each partition."""

    def __init__(self) -> None:
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self._next: dict[TopicPartition, int] = {}

    @property
    def has_id(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    def use(self, producer_id: int, epoch: int) -> None:
        """Take another id or epoch. Sequences begin at 0."""
        self.producer_id = producer_id
        self.epoch = epoch
        self._next.clear()

    def stamp(self, batch: Batch) -> None:
        """Give a batch that has none its id and sequence numbers."""
        if batch.base_sequence != NO_SEQUENCE or not self.has_id:
            return
        sequence = self._next.get(batch.topic_partition, 0)
        batch.producer_id = self.producer_id
        batch.producer_epoch = self.epoch
        batch.base_sequence = sequence
        self._next[batch.topic_partition] = (sequence + len(batch.records)) & MAX_INT32

    def take_back(self, batch: Batch) -> None:
        """Give the sequence numbers of a batch that no broker has stored to the next batches of its partition."""
        if batch.base_sequence != NO_SEQUENCE and (batch.producer_id, batch.producer_epoch) == (
            self.producer_id,
            self.epoch,
        ):
            self._next[batch.topic_partition] = batch.base_sequence
        batch.base_sequence = NO_SEQUENCE
        batch.producer_id = NO_PRODUCER_ID
        batch.producer_epoch = NO_PRODUCER_EPOCH
        batch.payload = None
