"""A Produce with acks=-1 that waits for its replicas (Kafka's ``DelayedProduce``).

The records are in the leader's log already. The operation completes when, for every partition, the high watermark has
passed the appended records or the partition can no longer tell (no longer leader, deleted); when time is up, what is
still open is answered with REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timer.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from odradek.broker.replica_manager import ReplicaManager
    from odradek.broker.replica_results import AppendResult
    from odradek.protocol.topic_partition import TopicPartition


class DelayedProduce(DelayedOperation):
    """`results` are the local appends; those without an error are pending until their `required_offset` is reached."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, AppendResult],
        replica_manager: ReplicaManager,
        respond: Callable[[Mapping[TopicPartition, AppendResult]], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._results = results
        self._pending = {tp for tp, result in results.items() if result.error == ErrorCode.NONE}
        self._replica_manager = replica_manager
        self._respond = respond

    def try_complete(self) -> bool:
        for topic_partition in list(self._pending):
            result = self._results[topic_partition]
            try:
                partition = self._replica_manager.partition(topic_partition)
            except KafkaError as error:
                reached, code = True, error.code
            else:
                reached, code = partition.replicas_reached(result.required_offset)
            if reached or code != ErrorCode.NONE:
                self._pending.discard(topic_partition)
                result.error = code
        return not self._pending and self.force_complete()

    def on_complete(self) -> None:
        for topic_partition in self._pending:
            self._results[topic_partition].error = ErrorCode.REQUEST_TIMED_OUT
        self._respond(self._results)
