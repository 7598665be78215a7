"""Collects state changes into one LeaderAndIsr, one UpdateMetadata and one StopReplica request per broker.

The state machines and the controller add entries; `take_requests` makes the requests in the order in which they must
arrive: all LeaderAndIsr, then all UpdateMetadata, then all StopReplica. So a broker leads or follows a partition before
it reports it to clients, and stops replicas last.

* Every LeaderAndIsr entry adds an UpdateMetadata entry for the partition to all live brokers.
* UpdateMetadata has only changed partitions, but always all live brokers; for brokers added without partitions it has
  only the live brokers.
* Entries of one partition are merged: the latest state counts; `is_new` and `delete_partition` stay set once they were.
* Requests go only to live brokers (including those shutting down); each has the broker epoch of its receiver.

`inter.broker.protocol.version` decides the versions; requests in versions without topic ids or leader recovery states
have none.

Kafka: AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import (
    LEADER_DURING_DELETE,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
)
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion

if TYPE_CHECKING:
    from odradek.controller.model.reassignment import ReplicaAssignment
    from odradek.controller.states.context import ControllerContext
    from odradek.protocol.topic_partition import TopicPartition

StateT = TypeVar("StateT")

FIRST_VERSION_WITH_TOPIC_IDS: Final = 5
"""The first version of LeaderAndIsr with topic ids."""

_PARTITION_EPOCH_DURING_DELETE: Final = 0
_LEADER_EPOCH_DURING_DELETE: Final = 0

ControlRequest: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
ControlResponse: TypeAlias = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse


class RequestBatch:
    """Entries that are not sent yet. Empty between two events of the controller."""

    def __init__(
        self,
        context: ControllerContext,
        controller_id: int,
        inter_broker_listener_name: str,
        metadata_version: MetadataVersion = LATEST_PRODUCTION,
    ) -> None:
        self._context = context
        self._controller_id = controller_id
        self._listener_name = inter_broker_listener_name
        # LeaderAndIsr and UpdateMetadata have topic ids since the same inter-broker protocol.
        self._sends_topic_ids = metadata_version.leader_and_isr_request_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._sends_leader_recovery = metadata_version.has_leader_recovery
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartitionState]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, StopReplicaPartitionState]] = {}
        self._update_metadata_brokers: set[int] = set()
        self._update_metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}

    @property
    def is_empty(self) -> bool:
        return not (self._leader_and_isr or self._stop_replica or self._update_metadata_brokers)

    def clear(self) -> None:
        self._leader_and_isr.clear()
        self._stop_replica.clear()
        self._update_metadata_brokers.clear()
        self._update_metadata.clear()

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        leadership: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        *,
        is_new: bool,
    ) -> None:
        leader_and_isr = leadership.leader_and_isr
        # A state node keeps RECOVERING, which a newer controller wrote, also where requests have no place for it.
        recovery_state = LeaderRecoveryState.RECOVERED
        if self._sends_leader_recovery:
            recovery_state = leader_and_isr.leader_recovery_state
        for broker_id in broker_ids:
            states = self._leader_and_isr.setdefault(broker_id, {})
            earlier = states.get(partition)
            states[partition] = LeaderAndIsrPartitionState(
                partition_index=partition.partition,
                controller_epoch=leadership.controller_epoch,
                leader=leader_and_isr.leader,
                leader_epoch=leader_and_isr.leader_epoch,
                isr=list(leader_and_isr.isr),
                partition_epoch=leader_and_isr.partition_epoch,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
                is_new=is_new or (earlier is not None and earlier.is_new),
                leader_recovery_state=int(recovery_state),
            )
        self.add_update_metadata(self._context.live_or_shutting_down_broker_ids, (partition,))

    def add_stop_replica(self, broker_ids: Iterable[int], partition: TopicPartition, *, delete: bool) -> None:
        leader_epoch = self._context.leader_epoch(partition)
        for broker_id in broker_ids:
            states = self._stop_replica.setdefault(broker_id, {})
            earlier = states.get(partition)
            states[partition] = StopReplicaPartitionState(
                partition_index=partition.partition,
                leader_epoch=leader_epoch,
                delete_partition=delete or (earlier is not None and earlier.delete_partition),
            )

    def add_update_metadata(self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Add an UpdateMetadata to each broker. Partitions that never had a leader are left out."""
        self._update_metadata_brokers.update(broker_ids)
        for partition in partitions:
            leadership = self._context.leadership(partition)
            if leadership is not None:
                self._update_metadata[partition] = self._metadata_of(partition, leadership)

    def _metadata_of(
        self, partition: TopicPartition, leadership: LeaderIsrAndControllerEpoch
    ) -> UpdateMetadataPartitionState:
        context = self._context
        leader_and_isr = leadership.leader_and_isr
        is_deleted = context.is_topic_queued_for_deletion(partition.topic)
        replicas = context.replicas(partition)
        return UpdateMetadataPartitionState(
            partition_index=partition.partition,
            controller_epoch=leadership.controller_epoch,
            leader=LEADER_DURING_DELETE if is_deleted else leader_and_isr.leader,
            leader_epoch=_LEADER_EPOCH_DURING_DELETE if is_deleted else leader_and_isr.leader_epoch,
            isr=list(leader_and_isr.isr),
            zk_version=_PARTITION_EPOCH_DURING_DELETE if is_deleted else leader_and_isr.partition_epoch,
            replicas=list(replicas),
            offline_replicas=[replica for replica in replicas if not context.is_replica_online(replica, partition)],
        )

    async def take_requests(self) -> list[tuple[int, ControlRequest]]:
        """The collected entries as requests, each with its broker id. The batch is empty afterwards.

        With turns of the event loop: one request may name all partitions of the cluster. Nothing may add entries
        meanwhile, as during any event of the controller.
        """
        requests: list[tuple[int, ControlRequest]] = []
        requests += [request async for request in self._leader_and_isr_requests()]
        requests += [request async for request in self._update_metadata_requests()]
        requests += [request async for request in self._stop_replica_requests()]
        self.clear()
        return requests

    async def _leader_and_isr_requests(self) -> AsyncIterator[tuple[int, LeaderAndIsrRequest]]:
        context = self._context
        for broker_id, states in self._leader_and_isr.items():
            broker_epoch = context.broker_epoch(broker_id)
            if broker_epoch is None:
                continue
            yield (
                broker_id,
                LeaderAndIsrRequest(
                    controller_id=self._controller_id,
                    controller_epoch=context.epoch,
                    broker_epoch=broker_epoch,
                    topic_states=[
                        LeaderAndIsrTopicState(
                            topic_name=topic,
                            topic_id=self._topic_id(topic),
                            partition_states=partition_states,
                        )
                        async for topic, partition_states in _by_topic(states)
                    ],
                    live_leaders=self._live_leaders({state.leader async for state in in_turns(states.values())}),
                ),
            )

    def _topic_id(self, topic: str) -> bytes:
        return self._context.topic_ids.get(topic, ZERO_UUID) if self._sends_topic_ids else ZERO_UUID

    def _live_leaders(self, leaders: set[int]) -> list[LeaderAndIsrLiveLeader]:
        live: list[LeaderAndIsrLiveLeader] = []
        for leader in sorted(leaders):
            broker = self._context.live_or_shutting_down_broker(leader)
            point = None if broker is None else broker.end_point(self._listener_name)
            if point is not None:
                live.append(LeaderAndIsrLiveLeader(broker_id=leader, host_name=point.host, port=point.port))
        return live

    async def _update_metadata_requests(self) -> AsyncIterator[tuple[int, UpdateMetadataRequest]]:
        if not self._update_metadata_brokers:
            return
        context = self._context
        topic_states = [
            UpdateMetadataTopicState(
                topic_name=topic, topic_id=self._topic_id(topic), partition_states=partition_states
            )
            async for topic, partition_states in _by_topic(self._update_metadata)
        ]
        live_brokers = self._live_brokers()
        for broker_id in sorted(self._update_metadata_brokers):
            broker_epoch = context.broker_epoch(broker_id)
            if broker_epoch is not None:
                yield (
                    broker_id,
                    UpdateMetadataRequest(
                        controller_id=self._controller_id,
                        controller_epoch=context.epoch,
                        broker_epoch=broker_epoch,
                        topic_states=topic_states,
                        live_brokers=live_brokers,
                    ),
                )

    def _live_brokers(self) -> list[UpdateMetadataBroker]:
        return [
            UpdateMetadataBroker(
                id=broker.id,
                endpoints=[
                    UpdateMetadataEndpoint(
                        port=point.port,
                        host=point.host,
                        listener=point.listener_name,
                        security_protocol=int(point.security_protocol),
                    )
                    for point in broker.end_points
                ],
                rack=broker.rack,
            )
            for broker in self._context.live_or_shutting_down_brokers
        ]

    async def _stop_replica_requests(self) -> AsyncIterator[tuple[int, StopReplicaRequest]]:
        for broker_id, states in self._stop_replica.items():
            broker_epoch = self._context.broker_epoch(broker_id)
            if broker_epoch is None:
                continue
            yield (
                broker_id,
                StopReplicaRequest(
                    controller_id=self._controller_id,
                    controller_epoch=self._context.epoch,
                    broker_epoch=broker_epoch,
                    topic_states=[
                        StopReplicaTopicState(topic_name=topic, partition_states=partition_states)
                        async for topic, partition_states in _by_topic(states)
                    ],
                ),
            )


async def _by_topic(states: Mapping[TopicPartition, StateT]) -> AsyncIterator[tuple[str, list[StateT]]]:
    """The states of each topic, in the order of their first ones."""
    topics: dict[str, list[StateT]] = {}
    async for partition, state in in_turns(states.items()):
        topics.setdefault(partition.topic, []).append(state)
    async for topic in in_turns(topics.items()):
        yield topic
