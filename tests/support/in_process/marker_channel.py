"""The leaders of partitions, as a transaction coordinator sees them: a `MarkerChannel` without a broker behind it."""

from __future__ import annotations

from collections.abc import Callable

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.topic_partition import TopicPartition

OWN_ID = 0

Answer = Callable[[WriteTxnMarkersResponse | None], None]


class FakeMarkerChannel:
    """Every partition is led by broker 0, unless `leaders` says otherwise (None: the metadata do not name it; it is
    deleted, if it is not in `in_tree`).

    Markers are written at once, with `errors` for some partitions; with `hold` on, requests wait for `release`.
    """

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int | None] = {}
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.in_tree: set[TopicPartition] = set()
        self.hold = False
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []
        self._waiting: list[tuple[WriteTxnMarkersRequest, Answer]] = []

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        return self.leaders.get(topic_partition, OWN_ID)

    def find_deleted(
        self, topic_partitions: frozenset[TopicPartition], respond: Callable[[frozenset[TopicPartition]], None]
    ) -> None:
        respond(topic_partitions - self.in_tree)

    def send_markers(self, broker_id: int, request: WriteTxnMarkersRequest, respond: Answer) -> None:
        self.sent.append((broker_id, request))
        if self.hold:
            self._waiting.append((request, respond))
        else:
            respond(self._written(request))

    def release(self, *, answered: bool = True) -> None:
        """Answer what waits, and what comes from now on; or let it be known that no answer will come."""
        self.hold = False
        waiting, self._waiting = self._waiting, []
        for request, respond in waiting:
            respond(self._written(request) if answered else None)

    def _written(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self.errors.get(TopicPartition(topic.name, index), ErrorCode.NONE),
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )
