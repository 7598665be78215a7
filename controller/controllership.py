"""The state of an active controller, from its election to its resignation.

The flows of the controller (`broker_changes`, `topic_changes`, `alter_partition`, ...) are functions on this object. A
broker that is elected again gets a new one, so that no state of an earlier election is used.

Kafka: KafkaController.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.controller.events import (
    BrokerModifications,
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    PartitionModifications,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from odradek.controller.loop_turns import in_turns
from odradek.controller.partition_state_nodes import PartitionStateNodes
from odradek.controller.states.context import ControllerContext
from odradek.controller.states.partition_states import PartitionStateMachine
from odradek.controller.states.replica_states import ReplicaStateMachine
from odradek.controller.states.request_batch import ControlRequest, ControlResponse, RequestBatch
from odradek.controller.topic_deletion import TopicDeletionManager
from odradek.controller.tree.metadata_tree import Watcher, WatchEvent, WatchEventType
from odradek.controller.znodes import znodes
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from odradek.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.channels import ControlChannel
    from odradek.controller.model.controller_config import ControllerConfig
    from odradek.controller.znodes.election import Elected
    from odradek.controller.znodes.metadata_client import MetadataClient

DATA_CHANGE = frozenset({WatchEventType.CHANGED})
CREATION = frozenset({WatchEventType.CREATED})
CHILDREN = frozenset({WatchEventType.CHILDREN})


@dataclass(frozen=True, slots=True)
class EventOnWatch:
    """A watcher that puts a controller event on each watch event of its types. Equal ones count as one watcher."""

    put: Callable[[ControllerEvent], None]
    event: ControllerEvent
    types: frozenset[WatchEventType]

    def __call__(self, watch_event: WatchEvent) -> None:
        if watch_event.type in self.types:
            self.put(self.event)


class Controllership:
    """See the module."""

    def __init__(
        self,
        config: ControllerConfig,
        elected: Elected,
        client: MetadataClient,
        channel: ControlChannel,
        put: Callable[[ControllerEvent], None],
    ) -> None:
        self.config = config
        self.client = client
        self.channel = channel
        self.put = put
        self.context = ControllerContext()
        self.context.epoch = elected.epoch
        self.context.epoch_zk_version = elected.epoch_zk_version
        self.state_nodes = PartitionStateNodes(client, self.context, config.broker_settings)
        self.batch = RequestBatch(
            self.context, config.broker_id, config.inter_broker_listener_name, config.metadata_version
        )
        self.partition_states = PartitionStateMachine(
            self.context,
            self.state_nodes,
            self.batch,
            self.send,
            config.broker_id,
            has_leader_recovery=config.metadata_version.has_leader_recovery,
        )
        self.replica_states = ReplicaStateMachine(
            self.context, self.state_nodes, self.batch, self.send, config.broker_id
        )
        self.deletions = TopicDeletionManager(
            context=self.context,
            client=client,
            partition_states=self.partition_states,
            replica_states=self.replica_states,
            send_update_metadata=self.send_update_metadata_to_all,
            is_enabled=config.delete_topic_enable,
        )
        self.is_over = False

    @property
    def fence(self) -> int:
        """The version of `/controller_epoch` after this election, which fences the controller's writes."""
        return self.context.epoch_zk_version

    # Watches

    def watch(self, event: ControllerEvent, types: frozenset[WatchEventType]) -> Watcher:
        return EventOnWatch(self.put, event, types)

    def topic_watcher(self, topic: str) -> Watcher:
        return self.watch(PartitionModifications(topic), DATA_CHANGE)

    async def watch_brokers(self, broker_ids: Iterable[int]) -> None:
        """Watch the registrations of brokers. Kafka: KafkaController.registerBrokerModificationsHandler."""
        for broker_id in broker_ids:
            watcher = self.watch(BrokerModifications(broker_id), DATA_CHANGE)
            await self.client.watch_existence(znodes.broker_id_path(broker_id), watcher)

    # Requests

    def send(self, requests: list[tuple[int, ControlRequest]]) -> None:
        for broker_id, request in requests:
            self.channel.send(broker_id, request, self._callback(broker_id, request))

    async def send_batch(self) -> None:
        self.send(await self.batch.take_requests())

    async def send_update_metadata(self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Send UpdateMetadata with the live brokers and these partitions.

        Kafka: KafkaController.sendUpdateMetadataRequest.
        """
        self.batch.add_update_metadata(broker_ids)
        async for partition in in_turns(partitions):
            self.batch.add_update_metadata((), (partition,))
        await self.send_batch()

    async def send_update_metadata_to_all(self, partitions: Iterable[TopicPartition] = ()) -> None:
        await self.send_update_metadata(self.context.live_or_shutting_down_broker_ids, partitions)

    def _callback(self, broker_id: int, request: ControlRequest) -> Callable[[ControlResponse], None]:
        def on_response(response: ControlResponse) -> None:
            if self.is_over:
                return
            match response:
                case LeaderAndIsrResponse():
                    self.put(LeaderAndIsrResponseReceived(broker_id, response))
                case UpdateMetadataResponse():
                    self.put(UpdateMetadataResponseReceived(broker_id, response))
                case StopReplicaResponse() if isinstance(request, StopReplicaRequest):
                    self._on_stop_replica_response(broker_id, request, response)

        return on_response

    def _on_stop_replica_response(
        self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse
    ) -> None:
        """Put an event with the results of deleted replicas; only topics that are being deleted matter."""
        deleted = {
            TopicPartition(topic.topic_name, partition.partition_index)
            for topic in request.topic_states
            for partition in topic.partition_states
            if partition.delete_partition and self.context.is_topic_deletion_in_progress(topic.topic_name)
        }
        errors: dict[TopicPartition, int] = {}
        for error in response.partition_errors:
            partition = TopicPartition(error.topic_name, error.partition_index)
            if partition in deleted:
                errors[partition] = error.error_code
        if errors:
            self.put(TopicDeletionStopReplicaResponseReceived(broker_id, response.error_code, errors))
