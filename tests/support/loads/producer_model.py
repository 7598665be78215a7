"""A model of one idempotent producer on a partition: the answer to each batch.

the batch                                          answer
-------------------------------------------------  -------------------------------
of an older epoch                                  INVALID_PRODUCER_EPOCH
one of those that are remembered, exactly          NONE, the offset it has
begins where the last one ended, or a new epoch    NONE, the end of the log
any other                                          OUT_OF_ORDER_SEQUENCE_NUMBER
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.storage.producers.producer_state import BATCHES_RETAINED


class Sent(NamedTuple):
    """A batch by its first sequence, its number of records, and its producer's epoch."""

    sequence: int
    count: int
    epoch: int = 0


class Answer(NamedTuple):
    error: ErrorCode
    offset: int
    """-1 where there is an error."""


class ProducerModel:
    """One producer that has begun at sequence 0."""

    def __init__(self) -> None:
        self.written: dict[Sent, int] = {}
        """The batches in the log, each once, with its offset."""
        self.epoch = self.next_sequence = 0
        self._remembered: list[Sent] = []

    def append(self, batch: Sent, end: int) -> Answer:
        """`end` is the end of the log."""
        if batch.epoch < self.epoch:
            return Answer(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        if batch in self._remembered:
            return Answer(ErrorCode.NONE, self.written[batch])
        if batch.sequence != (self.next_sequence if batch.epoch == self.epoch else 0):
            return Answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        self._remembered = [*(self._remembered if batch.epoch == self.epoch else []), batch][-BATCHES_RETAINED:]
        self.written[batch] = end
        self.epoch, self.next_sequence = batch.epoch, batch.sequence + batch.count
        return Answer(ErrorCode.NONE, end)

    def restart(self, remembered: int) -> None:
        """The broker starts again and knows so many of the last batches."""
        self._remembered = [batch for batch in self.written if batch.epoch == self.epoch][-remembered:]
