"""A DeleteRecords that waits until every live replica has moved its log start (Kafka's ``DelayedDeleteRecords``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timer.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from odradek.broker.replica_manager import ReplicaManager
    from odradek.broker.replica_results import DeleteRecordsResult
    from odradek.protocol.topic_partition import TopicPartition


class DelayedDeleteRecords(DelayedOperation):
    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, DeleteRecordsResult],
        replica_manager: ReplicaManager,
        respond: Callable[[Mapping[TopicPartition, DeleteRecordsResult]], None],
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
                result.low_watermark = self._replica_manager.partition(topic_partition).low_watermark()
            except KafkaError as error:
                result.error = error.code
                result.low_watermark = -1
                self._pending.discard(topic_partition)
            else:
                if result.low_watermark >= result.requested_offset:
                    self._pending.discard(topic_partition)
        return not self._pending and self.force_complete()

    def on_complete(self) -> None:
        for topic_partition in self._pending:
            self._results[topic_partition].error = ErrorCode.REQUEST_TIMED_OUT
        self._respond(self._results)
