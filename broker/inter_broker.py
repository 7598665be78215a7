"""How the requests of brokers to each other reach this broker when they come from itself.

The same request objects that would cross the wire are given to the same handlers; nothing is encoded. They come from
the controller, from transaction coordinators that write markers, and from logs that verify a transaction.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.broker.apis import add_partitions_to_txn, leader_and_isr, stop_replica, update_metadata, write_txn_markers
from odradek.controller.topic_names import TRANSACTION_STATE_TOPIC
from odradek.coordinator.transaction.markers import NO_LEADER
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.services import Services
    from odradek.controller.request_batch import ControlRequest, ControlResponse
    from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
    from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

ADD_PARTITIONS_TO_TXN_VERSION = 5
LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4


class OwnBroker:
    """The way to the broker one lives in. Implements `MarkerChannel` and `VerificationChannel`."""

    def __init__(self) -> None:
        self._broker: Services | None = None

    def serve(self, broker: Services) -> None:
        """From here on requests are handled by `broker`; the controller is built before it is."""
        self._broker = broker

    @property
    def _services(self) -> Services:
        assert self._broker is not None, "a request was sent before the broker was wired"
        return self._broker

    async def handle(self, request: ControlRequest) -> ControlResponse:
        """Apply a control request; the answer comes when what it changed is durable."""
        broker = self._services
        answered: asyncio.Future[ControlResponse] = asyncio.get_running_loop().create_future()
        if isinstance(request, LeaderAndIsrRequest):
            await leader_and_isr.apply(broker, request, LEADER_AND_ISR_VERSION, answered.set_result)
        elif isinstance(request, StopReplicaRequest):
            stop_replica.apply(broker, request, STOP_REPLICA_VERSION, answered.set_result)
        else:
            update_metadata.apply(broker, request, UPDATE_METADATA_VERSION, answered.set_result)
        return await answered

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """Where markers for the partition go: -1 while nobody who lives leads it, None if it does not exist."""
        cache = self._services.metadata_cache
        state = cache.partition_state(*topic_partition)
        if state is None:
            # A broker that starts leads partitions of transactions before it is told of the others. If what it has not
            # heard of were deleted, a transaction decided in between would stay open there for good.
            return None if cache.contains(TRANSACTION_STATE_TOPIC) else NO_LEADER
        return state.leader if cache.is_alive(state.leader) else NO_LEADER

    def coordinator_of(self, transactional_id: str) -> int | None:
        """Who coordinates the id; None while nobody who lives does."""
        partition = self._services.transaction_coordinator.partition_for(transactional_id)
        leader = self.leader_of(TopicPartition(TRANSACTION_STATE_TOPIC, partition))
        return None if leader == NO_LEADER else leader

    def send_markers(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        respond: Callable[[WriteTxnMarkersResponse | None], None],
    ) -> None:
        write_txn_markers.apply(self._services, request, respond)

    def send_verification(
        self,
        broker_id: int,
        request: AddPartitionsToTxnRequest,
        respond: Callable[[AddPartitionsToTxnResponse | None], None],
    ) -> None:
        add_partitions_to_txn.apply(self._services, request, ADD_PARTITIONS_TO_TXN_VERSION, respond)
