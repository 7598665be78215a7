"""Transactions of a cluster for tests of commands: what coordinators and leaders answer about them."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.list_transactions import TransactionState as ListedTransaction
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster


def producer(producer_id: int, *, start: int = -1, timestamp: int = 1_000) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=2,
        last_sequence=7,
        last_timestamp=timestamp,
        coordinator_epoch=-1,
        current_txn_start_offset=start,
    )


class AdminTransactions:
    """Broker 1 coordinates all transactional ids."""

    def __init__(self, cluster: AdminCluster) -> None:
        self.producers: dict[TopicPartition, list[ProducerState]] = {}
        self.states: dict[str, TransactionState] = {}
        self.error = ErrorCode.NONE
        """Of markers, and of the producer id of a transactional id."""
        cluster.on(FindCoordinatorRequest, self._find)
        cluster.on(ListTransactionsRequest, self._list)
        cluster.on(DescribeTransactionsRequest, self._describe)
        cluster.on(DescribeProducersRequest, self._producers)
        cluster.on(WriteTxnMarkersRequest, self._write)
        cluster.on(InitProducerIdRequest, self._init)

    def has(self, name: str, producer_id: int, state: str = "Ongoing", **topics: list[int]) -> None:
        self.states[name] = TransactionState(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=2,
            transaction_state=state,
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=1_000 if state == "Ongoing" else -1,
            topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
        )

    def _find(self, broker_id: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        assert request.key_type == 1
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key=key, node_id=1) for key in request.coordinator_keys]
        )

    def _list(self, broker_id: int, request: ListTransactionsRequest) -> ListTransactionsResponse:
        wanted = set(request.producer_id_filters)
        found = [
            ListedTransaction(
                transactional_id=name, producer_id=state.producer_id, transaction_state=state.transaction_state
            )
            for name, state in self.states.items()
            if broker_id == 1 and (not wanted or state.producer_id in wanted)
        ]
        return ListTransactionsResponse(transaction_states=found)

    def _describe(self, broker_id: int, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
        assert broker_id == 1
        unknown = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return DescribeTransactionsResponse(
            transaction_states=[
                self.states.get(name, TransactionState(transactional_id=name, error_code=unknown))
                for name in request.transactional_ids
            ]
        )

    def _producers(self, broker_id: int, request: DescribeProducersRequest) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[
                        PartitionResponse(
                            partition_index=index,
                            active_producers=self.producers.get(TopicPartition(topic.name, index), []),
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _write(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        ((marker,), (topic,)) = request.markers, request.markers[0].topics
        written = WritableTxnMarkerPartitionResult(partition_index=topic.partition_indexes[0], error_code=self.error)
        result = WritableTxnMarkerTopicResult(name=topic.name, partitions=[written])
        return WriteTxnMarkersResponse(
            markers=[WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[result])]
        )

    def _init(self, broker_id: int, request: InitProducerIdRequest) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=9, producer_epoch=3, error_code=self.error)
