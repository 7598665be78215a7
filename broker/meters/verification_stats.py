"""How the transaction coordinators answered whether partitions belong to a transaction (KIP-890).

Counted once for each question, and only while metrics are on.

Kafka: AddPartitionsToTxnManager.verificationFailureRate, AddPartitionsToTxnManager.verificationTimeMs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.clock import Clock

    OnPartitionErrors = Callable[[Mapping[TopicPartition, ErrorCode]], None]


class VerificationStats:
    """The figures of a broker."""

    __slots__ = ("_clock", "failures", "times_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failures = 0
        """Partitions that were not in the transaction or could not be verified."""
        self.times_ms = Histogram()
        """Milliseconds from a question to its answer."""

    def counted(self, respond: OnPartitionErrors) -> OnPartitionErrors:
        """A question is asked now: `respond` for it, which counts the answer, too."""
        asked_ms = self._clock.monotonic_ms()

        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            self.failures += len(errors)
            self.times_ms.update(self._clock.monotonic_ms() - asked_ms)
            respond(errors)

        return answered
