"""The controller of a broker: takes part in elections and, while it is elected, controls all partitions of the cluster.

`ControllerEventManager` calls it with one event at a time, in the order of arrival. This is the whole concurrency
control: while a handler waits for the metadata tree, no other event is handled. Watches, responses of brokers, timers
and requests only `put` events.

Every broker has a controller; one of them is active and has a `Controllership` with all its state. A write that is
refused because its fencing token is stale (ControllerMoved) ends the event, and the broker checks whether it is still
the controller. If a write finds no space (StorageFull), the controller resigns, and takes part in the election again
until there is space; the new controllership finds in the tree what is not done. When the session is lost, the queue is
cleared and the broker resigns *before* a new session begins; then it registers again, with a new broker epoch, and
takes part in the election.

Kafka: KafkaController.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, assert_never

from odradek.controller import alter_partition, broker_changes, failover, partition_reassignment, topic_changes
from odradek.controller import events as ev
from odradek.controller import replica_elections as elections
from odradek.controller.controllership import Controllership
from odradek.controller.event_manager import ControllerEventManager, FutureReply
from odradek.controller.model.broker_info import NO_CONTROLLER
from odradek.controller.model.controller_config import ControllerConfig
from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.tree.metadata_tree import (
    MetadataTree,
    SessionExpired,
    StorageFull,
    TreeError,
    WatchEvent,
    WatchEventType,
)
from odradek.controller.znodes import znodes
from odradek.controller.znodes.election import delete_controller, register_controller
from odradek.controller.znodes.features import update_features
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import register_broker, update_broker
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import PRODUCER_IDS_BLOCK_SIZE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from odradek.controller.channels import ControlChannel
    from odradek.controller.model.broker_info import BrokerInfo
    from odradek.controller.model.reassignment import ReplicaAssignment
    from odradek.controller.znodes.features import FeatureUpdate
    from odradek.controller.znodes.znodes import ProducerIdsBlock
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.clock import Clock
    from odradek.timer.histogram import Histogram
    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

logger = logging.getLogger("odradek.controller")

FIRST_LEADER_REBALANCE_MS: Final = 5000
FAILOVER_RETRY_MS: Final = 1000
"""Delay before `/controller` is deleted after a failed failover. The failover may fail on every broker; without a delay
they would elect each other in an endless loop."""


class WhileActive(Protocol):
    """Work of other parts of the broker that only the active controller does."""

    def start(self) -> None:
        """The broker has become the controller."""

    def stop(self) -> None:
        """The broker resigns, or stops; called also if it was not the controller."""


class Controller:
    """See the module. The coroutines for requests raise KafkaError(NOT_CONTROLLER) if the controller is not active."""

    def __init__(
        self,
        *,
        tree: MetadataTree,
        broker_info: BrokerInfo,
        config: ControllerConfig,
        clock: Clock,
        timer: SystemTimer,
        channel: ControlChannel,
        new_topic_id: Callable[[], bytes],
    ) -> None:
        self.client = MetadataClient(tree)
        self.config = config
        self.broker_epoch = -1
        self.active_controller_id = NO_CONTROLLER
        self._tree = tree
        self._broker_info = broker_info
        self._clock = clock
        self._timer = timer
        self._channel = channel
        self._new_topic_id = new_topic_id
        self._session_id = tree.session_id
        self._controllership: Controllership | None = None
        self._rebalance_task: TimerTask | None = None
        self.while_active: WhileActive | None = None
        self.events = ControllerEventManager(self._handle, clock.monotonic_ms)
        tree.add_session_listener(self)

    @property
    def session_events(self) -> Mapping[str, int]:
        """Events of the session with ZooKeeper by Kafka's names; none without ZooKeeper."""
        return getattr(self._tree, "session_events", {})

    @property
    def zookeeper_latency_ms(self) -> Histogram | None:
        """None without ZooKeeper."""
        return getattr(self._tree, "latency_ms", None)

    @property
    def is_active(self) -> bool:
        return self._controllership is not None

    @property
    def controllership(self) -> Controllership | None:
        """The state of the active controller, to look at; None if it is not active."""
        return self._controllership

    # Start and stop

    async def register(self) -> int:
        """Register the broker and return its broker epoch; called just before `start`."""
        self.broker_epoch = await register_broker(self.client, self._broker_info, self._clock, self._session_id)
        self._session_id = self._tree.session_id
        return self.broker_epoch

    async def start(self) -> None:
        """Begin to handle events. Returns when the first election is over."""
        self.events.start()
        self.put(ev.Startup())
        await self.settle()

    async def shutdown(self) -> None:
        """Finish the current event, drop the others and resign. After the tree is closed, another broker is elected."""
        await self.events.close()
        self._resign()

    async def settle(self) -> None:
        """Wait until every queued event is handled."""
        await self.events.settle()

    async def session_lost(self) -> None:
        """Implements SessionListener."""
        self.events.clear()
        if self.events.is_running:
            handled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.put(ev.Expire(FutureReply(handled)))
            await handled

    def session_started(self) -> None:
        """Implements SessionListener."""
        self.put(ev.RegisterBrokerAndReelect())

    def put(self, event: ev.ControllerEvent) -> None:
        self.events.put(event)

    # Requests of brokers and clients

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move leaderships off a broker. Returns the partitions that it still leads."""
        return await self.events.request(lambda reply: ev.ControlledShutdown(broker_id, broker_epoch, reply))

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        try:
            return await self.events.request(lambda reply: ev.AlterPartitionReceived(request, version, reply))
        except KafkaError as error:
            return AlterPartitionResponse(error_code=error.code)

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition], election_type: ev.ElectionType
    ) -> ev.ElectionResults:
        """Elect preferred or unclean leaders, of partitions that are named once. Returns the new leader of each that
        exists, or its error.
        """
        trigger = ev.ElectionTrigger.ADMIN_CLIENT
        return await self.events.request(
            lambda reply: ev.ReplicaLeaderElection(partitions, election_type, trigger, reply)
        )

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> ProducerIdsBlock:
        return await self.events.request(lambda reply: ev.AllocateProducerIds(broker_id, broker_epoch, reply))

    async def alter_partition_reassignments(
        self, targets: Iterable[tuple[TopicPartition, tuple[int, ...] | None]]
    ) -> ev.ReassignmentResults:
        """Start or, with None as the target, cancel reassignments of partitions that are named once. Returns None or
        the error of each, in their order.
        """
        return await self.events.request(lambda reply: ev.ApiPartitionReassignment(targets, reply))

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, ReplicaAssignment]:
        """The reassignments of these partitions, for None of all."""
        return await self.events.request(lambda reply: ev.ListPartitionReassignments(partitions, reply))

    async def update_features(self, updates: Sequence[FeatureUpdate]) -> Mapping[str, KafkaError | None]:
        """Change the finalized features. Returns None or the error of each update."""
        return await self.events.request(lambda reply: ev.UpdateFeatures(updates, reply))

    def enable_default_unclean_leader_election(self) -> None:
        self.put(ev.UncleanLeaderElectionEnable())

    def enable_topic_unclean_leader_election(self, topic: str) -> None:
        if self.is_active:
            self.put(ev.TopicUncleanLeaderElectionEnable(topic))

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic with an id, until its last replica is deleted; None if there is none, or if another broker is the
        controller. Kafka: ControllerContext.topicName.
        """
        return None if self._controllership is None else self._controllership.context.topic_names.get(topic_id)

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return self._controllership is not None and self._controllership.deletions.is_queued(topic)

    async def update_broker_info(self, broker_info: BrokerInfo) -> None:
        """Write new endpoints of this broker to its registration; the broker epoch stays."""
        self._broker_info = broker_info
        await update_broker(self.client, broker_info, self._clock)

    # Handling of events

    async def _handle(self, event: ev.ControllerEvent) -> None:
        try:
            await self._process(event)
        except ControllerMoved as moved:
            logger.info("Controller moved to another broker when processing %s: %s", type(event).__name__, moved)
            ev.preempt(event)
            await self._recover(self._maybe_resign())
        except KafkaError as refusal:
            ev.fail(event, refusal)
        except SessionExpired:
            # An Expire event follows; it resigns and registers again.
            ev.preempt(event)
        except Exception as error:
            is_full = isinstance(error, StorageFull)
            logger.error("Error processing event %s%s", event, f": {error}" if is_full else "", exc_info=not is_full)
            ev.fail(event, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            if self._controllership is None:
                if is_full:  # nobody else would repeat the election
                    self._timer.schedule(FAILOVER_RETRY_MS, lambda: self.put(event))
            elif is_full or not self._controllership.batch.is_empty:
                # Some state changes were not written or sent to the brokers; a new election makes all of them again.
                logger.error("Forcing the controller to resign, because not all state changes were sent to the brokers")
                await self._recover(self._trigger_controller_move())

    async def _recover(self, step: Coroutine[object, object, None]) -> None:
        try:
            await step
        except (TreeError, BadZnode, ControllerMoved) as error:
            logger.warning("Error while resigning: %r", error)

    async def _process(self, event: ev.ControllerEvent) -> None:
        match event:
            case ev.Startup():
                await self.client.watch_existence(znodes.CONTROLLER, self._on_controller_node)
                await self._elect()
            case ev.ControllerChange():
                await self._maybe_resign()
            case ev.Reelect():
                await self._maybe_resign()
                await self._elect()
            case ev.RegisterBrokerAndReelect():
                await self.register()
                await self._maybe_resign()
                await self._elect()
            case ev.DeleteController(fence):
                await delete_controller(self.client, fence)
            case ev.Expire(reply):
                self.active_controller_id = NO_CONTROLLER
                self._resign()
                reply.set_result(None)
            case _:
                if self._controllership is not None:
                    await self._process_active(self._controllership, event)
                else:
                    ev.preempt(event)

    async def _process_active(self, controllership: Controllership, event: ev.ControllerEvent) -> None:
        match event:
            case ev.LeaderAndIsrResponseReceived(broker_id, response):
                await broker_changes.process_leader_and_isr_response(controllership, broker_id, response)
            case ev.UpdateMetadataResponseReceived(broker_id, metadata_response):
                if metadata_response.error_code != ErrorCode.NONE:
                    code = metadata_response.error_code
                    logger.error("Received error %d in UpdateMetadata response from broker %d", code, broker_id)
            case ev.TopicDeletionStopReplicaResponseReceived():
                await topic_changes.process_topic_deletion_stop_replica_response(controllership, event)
            case ev.UncleanLeaderElectionEnable():
                logger.info("Unclean leader election has been enabled by default")
                await controllership.partition_states.trigger_online_state_change()
            case ev.TopicUncleanLeaderElectionEnable(topic):
                logger.info("Unclean leader election has been enabled for topic %s", topic)
                await controllership.partition_states.trigger_online_state_change(topic)
            case ev.AutoPreferredReplicaLeaderElection():
                await self._process_auto_preferred_replica_leader_election(controllership)
            case (
                ev.ReplicaLeaderElection()
                | ev.ControlledShutdown()
                | ev.AlterPartitionReceived()
                | ev.AllocateProducerIds()
                | ev.ApiPartitionReassignment()
                | ev.ListPartitionReassignments()
                | ev.UpdateFeatures()
            ):
                await self._process_request(controllership, event)
            case _:
                await self._process_change_in_tree(controllership, event)

    async def _process_change_in_tree(self, controllership: Controllership, event: ev.ControllerEvent) -> None:
        match event:
            case ev.BrokerChange():
                await broker_changes.process_broker_change(controllership)
            case ev.BrokerModifications(broker_id):
                await broker_changes.process_broker_modification(controllership, broker_id)
            case ev.TopicChange():
                await topic_changes.process_topic_change(controllership, self._new_topic_id)
            case ev.PartitionModifications(topic):
                await topic_changes.process_partition_modifications(controllership, topic)
            case ev.TopicDeletion():
                await topic_changes.process_topic_deletion(controllership)
            case ev.IsrChangeNotification():
                await failover.process_isr_change_notification(controllership)
            case ev.LogDirEventNotification():
                await broker_changes.process_log_dir_event_notification(controllership)
            case ev.ZkPartitionReassignment():
                await partition_reassignment.process_zk_partition_reassignment(controllership)
            case _:
                raise ValueError(f"{event} is not an event of an active controller")

    async def _process_request(self, controllership: Controllership, event: ev.RequestEvent) -> None:
        match event:
            case ev.ReplicaLeaderElection(reply=elected):
                results = await elections.process_replica_leader_election(controllership, event)
                if elected is not None:
                    elected.set_result(results)
            case ev.ControlledShutdown(broker_id, broker_epoch, remaining):
                remaining.set_result(
                    await broker_changes.do_controlled_shutdown(controllership, broker_id, broker_epoch)
                )
            case ev.AlterPartitionReceived(request, version, altered):
                response, succeeded = await alter_partition.process_alter_partition(controllership, request, version)
                altered.set_result(response)
                for partition in succeeded:
                    await partition_reassignment.maybe_complete_reassignment(controllership, partition)
            case ev.AllocateProducerIds(broker_id, broker_epoch, allocated):
                allocated.set_result(await self._allocate_producer_ids(controllership, broker_id, broker_epoch))
            case ev.ApiPartitionReassignment(targets, reassigned):
                reassigned.set_result(
                    await partition_reassignment.process_api_partition_reassignment(controllership, targets)
                )
            case ev.ListPartitionReassignments(partitions, listed):
                listed.set_result(await partition_reassignment.ongoing_reassignments(controllership, partitions))
            case ev.UpdateFeatures(updates, updated):
                updated.set_result(
                    await update_features(controllership.client, updates, controllership.config.metadata_version)
                )
            case _:
                assert_never(event)

    async def _allocate_producer_ids(
        self, controllership: Controllership, broker_id: int, broker_epoch: int
    ) -> ProducerIdsBlock:
        known_epoch = controllership.context.broker_epoch(broker_id)
        if known_epoch is None:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if known_epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        return await controllership.client.next_producer_ids_block(broker_id, PRODUCER_IDS_BLOCK_SIZE)

    # Election

    def _on_controller_node(self, event: WatchEvent) -> None:
        self.put(ev.Reelect() if event.type is WatchEventType.DELETED else ev.ControllerChange())

    async def _elect(self) -> None:
        await self._read_active_controller()
        if self.active_controller_id != NO_CONTROLLER:
            logger.debug("Broker %d has been elected as the controller", self.active_controller_id)
            return
        try:
            elected = await register_controller(self.client, self.config.broker_id, self._clock)
        except ControllerMoved as lost:
            await self._maybe_resign()
            logger.info("Broker %d is the controller: %s", self.active_controller_id, lost)
            if self.active_controller_id == NO_CONTROLLER:
                self.put(ev.Reelect())  # the elected broker is gone already, and no watch was set when it left
            return
        logger.info("Elected as the controller. Epoch incremented to %d", elected.epoch)
        self.active_controller_id = self.config.broker_id
        self._controllership = Controllership(self.config, elected, self.client, self._channel, self.put)
        try:
            await failover.on_controller_failover(self._controllership, self._new_topic_id)
        except (ControllerMoved, SessionExpired):
            raise
        except Exception as error:
            logger.error("Error while becoming controller. Trigger controller movement", exc_info=error)
            deletion = ev.DeleteController(self._controllership.fence)
            self._resign()
            self._timer.schedule(FAILOVER_RETRY_MS, lambda: self.put(deletion))
            await self._read_active_controller()  # also watches the node, which will be deleted
            return
        if self.config.auto_leader_rebalance_enable:
            self._schedule_rebalance(FIRST_LEADER_REBALANCE_MS)
        if self.while_active is not None:
            self.while_active.start()

    async def _read_active_controller(self) -> None:
        controller = await self.client.controller(self._on_controller_node)
        self.active_controller_id = NO_CONTROLLER if controller is None else controller[0]

    async def _maybe_resign(self) -> None:
        """Read the current controller, and resign if it is another broker. Kafka: KafkaController.maybeResign."""
        await self.client.watch_existence(znodes.CONTROLLER, self._on_controller_node)
        await self._read_active_controller()
        if self._controllership is not None and self.active_controller_id != self.config.broker_id:
            self._resign()

    async def _trigger_controller_move(self) -> None:
        """Resign and delete `/controller`, so that a broker is elected and starts without the state of this one.

        Kafka: KafkaController.triggerControllerMove.
        """
        controllership = self._controllership
        await self._read_active_controller()
        if controllership is None or self.active_controller_id != self.config.broker_id:
            self._resign()
            return
        self.active_controller_id = NO_CONTROLLER
        self._resign()
        self.put(ev.DeleteController(controllership.fence))

    def _resign(self) -> None:
        if self._rebalance_task is not None:
            self._rebalance_task.cancel()
            self._rebalance_task = None
        if self.while_active is not None:
            self.while_active.stop()
        if self._controllership is not None:
            self._controllership.is_over = True
            self._controllership = None
            self._channel.shutdown()
            logger.info("Resigned")

    # Preferred leaders

    async def _process_auto_preferred_replica_leader_election(self, controllership: Controllership) -> None:
        try:
            logger.info("Processing automatic preferred replica leader election")
            await elections.check_and_trigger_auto_leader_rebalance(controllership)
        finally:
            self._schedule_rebalance(self.config.leader_imbalance_check_interval_seconds * 1000)

    def _schedule_rebalance(self, delay_ms: int) -> None:
        self._rebalance_task = self._timer.schedule_round(
            delay_ms, lambda: self.put(ev.AutoPreferredReplicaLeaderElection())
        )
