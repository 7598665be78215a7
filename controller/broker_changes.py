"""Brokers that start, fail, restart, change their endpoints or shut down, and failed log directories.

| event | effect |
| --- | --- |
| start | UpdateMetadata to all; the broker's replicas go ONLINE; partitions without a leader get an election |
| failure | partitions it led go OFFLINE and get an election; its replicas go OFFLINE and are removed from ISRs |
| bounce | the same id with a larger broker epoch: a failure, then a start |
| controlled shutdown | leaders move, then followers leave the ISRs; the response has the partitions it still leads |
| failed log directory | LeaderAndIsr for all replicas of the broker; those with KAFKA_STORAGE_ERROR are offline |

Kafka: KafkaController.onBrokerStartup, KafkaController.onBrokerFailure, KafkaController.onReplicasBecomeOffline,
KafkaController.doControlledShutdown, KafkaController.processBrokerChange.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from odradek.controller import partition_reassignment
from odradek.controller.controllership import CHILDREN, DATA_CHANGE
from odradek.controller.events import BrokerChange, BrokerModifications, LogDirEventNotification
from odradek.controller.model.broker_info import UNKNOWN_BROKER_EPOCH
from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.leader_election import ElectionStrategy
from odradek.controller.states.partition_states import PartitionState
from odradek.controller.states.replica_states import ReplicaState
from odradek.controller.znodes import znodes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership
    from odradek.protocol.messages.leader_and_isr import LeaderAndIsrResponse

logger = logging.getLogger("odradek.controller")


async def process_broker_change(controllership: Controllership) -> None:
    """Compare the registered brokers with the context, and handle new, bounced and dead brokers."""
    context = controllership.context
    current = await controllership.client.brokers_and_epochs(controllership.watch(BrokerChange(), CHILDREN))
    known = context.live_or_shutting_down_broker_ids
    by_id = {broker.id: broker for broker in current}
    epochs = {broker.id: epoch for broker, epoch in current.items()}
    new = sorted(by_id.keys() - known)
    dead = sorted(known - by_id.keys())
    bounced = sorted(b for b in by_id.keys() & known if epochs[b] > (context.broker_epoch(b) or 0))
    logger.info("Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s", new, dead, bounced)
    for broker_id in bounced + dead:
        controllership.channel.remove_broker(broker_id)
    for broker_id in new + bounced:
        controllership.channel.add_broker(by_id[broker_id])
    if new:
        context.add_live_brokers({by_id[b]: epochs[b] for b in new})
        await on_broker_startup(controllership, new)
    if bounced:
        context.remove_live_brokers(bounced)
        await on_broker_failure(controllership, bounced)
        context.add_live_brokers({by_id[b]: epochs[b] for b in bounced})
        await on_broker_startup(controllership, bounced)
    if dead:
        context.remove_live_brokers(dead)
        await on_broker_failure(controllership, dead)


async def on_broker_startup(controllership: Controllership, broker_ids: list[int]) -> None:
    context = controllership.context
    for broker_id in broker_ids:
        context.replicas_on_offline_dirs.pop(broker_id, None)
    await controllership.send_update_metadata(context.live_or_shutting_down_broker_ids - set(broker_ids))
    await controllership.send_update_metadata(broker_ids, context.partitions_with_leaders)
    replicas = context.replicas_on_brokers(broker_ids)
    await controllership.replica_states.handle_state_changes(replicas, ReplicaState.ONLINE)
    await controllership.partition_states.trigger_online_state_change()
    await partition_reassignment.maybe_resume_reassignments(
        controllership, lambda _, assignment: any(broker_id in assignment.target_replicas for broker_id in broker_ids)
    )
    await controllership.deletions.resume_deletion_for_topics(
        {replica.topic for replica in replicas if controllership.deletions.is_queued(replica.topic)}
    )
    await controllership.watch_brokers(broker_ids)


async def on_broker_failure(controllership: Controllership, broker_ids: list[int]) -> None:
    context = controllership.context
    for broker_id in broker_ids:
        context.replicas_on_offline_dirs.pop(broker_id, None)
        context.shutting_down_broker_ids.discard(broker_id)
    await on_replicas_become_offline(controllership, context.replicas_on_brokers(broker_ids))


async def on_replicas_become_offline(controllership: Controllership, replicas: Iterable[PartitionAndReplica]) -> None:
    """Elect new leaders first, then shrink the ISRs."""
    context = controllership.context
    being_deleted: list[PartitionAndReplica] = []
    others: list[PartitionAndReplica] = []
    for replica in replicas:
        (being_deleted if controllership.deletions.is_queued(replica.topic) else others).append(replica)
    await controllership.partition_states.handle_state_changes(
        context.partitions_with_offline_leader, PartitionState.OFFLINE
    )
    elections = await controllership.partition_states.trigger_online_state_change()
    await controllership.replica_states.handle_state_changes(others, ReplicaState.OFFLINE)
    if being_deleted:
        await controllership.deletions.fail_replica_deletion(being_deleted)
    if not others and not any(isinstance(result, LeaderAndIsr) for result in elections.values()):
        # No other request has told the brokers the new live brokers.
        await controllership.send_update_metadata_to_all()


async def process_broker_modification(controllership: Controllership, broker_id: int) -> None:
    """A broker changed its registration: send its new endpoints to all brokers."""
    registered = await controllership.client.broker(
        broker_id, controllership.watch(BrokerModifications(broker_id), DATA_CHANGE)
    )
    known = controllership.context.live_or_shutting_down_broker(broker_id)
    if registered is not None and known is not None and registered.end_points != known.end_points:
        logger.info("Updated broker metadata: %s -> %s", known, registered)
        controllership.context.update_broker(registered)
        await controllership.send_update_metadata_to_all()


async def do_controlled_shutdown(
    controllership: Controllership, broker_id: int, broker_epoch: int
) -> list[TopicPartition]:
    """Move leaderships off a broker and stop its followers. Returns the replicated partitions that it still leads.

    Raises: KafkaError BROKER_NOT_AVAILABLE for a broker that is not registered, UNKNOWN_SERVER_ERROR if its epoch is
    given (Kafka looks it up before it looks for the broker); STALE_BROKER_EPOCH.
    """
    context = controllership.context
    known_epoch = context.broker_epoch(broker_id)
    if known_epoch is None:
        has_epoch = broker_epoch != UNKNOWN_BROKER_EPOCH
        code = ErrorCode.UNKNOWN_SERVER_ERROR if has_epoch else ErrorCode.BROKER_NOT_AVAILABLE
        raise KafkaError(code, f"Broker id {broker_id} does not exist.")
    if UNKNOWN_BROKER_EPOCH != broker_epoch < known_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Received controlled shutdown request from an old broker epoch {broker_epoch} for broker {broker_id}. "
            f"Current broker epoch is {known_epoch}.",
        )
    logger.info("Shutting down broker %d", broker_id)
    context.shutting_down_broker_ids.add(broker_id)
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for partition in context.partitions_on_broker(broker_id):
        leadership = context.leadership(partition)
        if (
            leadership is None
            or len(context.replicas(partition)) == 1
            or controllership.deletions.is_queued(partition.topic)
        ):
            continue
        (led if leadership.leader_and_isr.leader == broker_id else followed).append(partition)
    await controllership.partition_states.handle_state_changes(
        led, PartitionState.ONLINE, ElectionStrategy.CONTROLLED_SHUTDOWN
    )
    for partition in followed:
        controllership.batch.add_stop_replica((broker_id,), partition, delete=False)
    await controllership.send_batch()
    await controllership.replica_states.handle_state_changes(
        [PartitionAndReplica(partition, broker_id) for partition in followed], ReplicaState.OFFLINE
    )
    return context.partition_leaders_on_broker(broker_id)


async def process_log_dir_event_notification(controllership: Controllership) -> None:
    """Send LeaderAndIsr for all replicas of brokers with a failed log directory. The responses have the offline ones.

    Kafka: KafkaController.processLogDirEventNotification, KafkaController.onBrokerLogDirFailure.
    """
    watcher = controllership.watch(LogDirEventNotification(), CHILDREN)
    path = znodes.LOG_DIR_EVENT_NOTIFICATION
    names = await controllership.client.numbered_children(path, watcher)
    if not names:
        return
    events = await controllership.client.datas([f"{path}/{name}" for name in names])
    try:
        brokers = {broker for data in events if (broker := znodes.decode_log_dir_event(data)) is not None}
        logger.info("Handling log directory failure for brokers %s", sorted(brokers))
        await controllership.replica_states.handle_state_changes(
            controllership.context.replicas_on_brokers(brokers), ReplicaState.ONLINE
        )
    finally:
        await controllership.client.delete_children(path, names, controllership.fence)


async def process_leader_and_isr_response(
    controllership: Controllership, broker_id: int, response: LeaderAndIsrResponse
) -> None:
    """Update the replicas on failed log directories. Other errors of partitions are ignored, as in Kafka."""
    if response.error_code != ErrorCode.NONE:
        logger.error("Received error %d in LeaderAndIsr response from broker %d", response.error_code, broker_id)
        return
    offline: set[TopicPartition] = set()
    online: set[TopicPartition] = set()
    for partition, error_code in _partition_errors(response, controllership.context.topic_names):
        if error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            offline.add(partition)
        elif error_code == ErrorCode.NONE:
            online.add(partition)
    known = controllership.context.replicas_on_offline_dirs.get(broker_id, frozenset())
    current = (known - online) | offline
    controllership.context.replicas_on_offline_dirs[broker_id] = frozenset(current)
    newly_offline = sorted(current - known)
    if newly_offline:
        logger.info("Mark replicas %s on broker %d as offline", ",".join(map(str, newly_offline)), broker_id)
        await on_replicas_become_offline(controllership, [PartitionAndReplica(p, broker_id) for p in newly_offline])


def _partition_errors(
    response: LeaderAndIsrResponse, topic_names: Mapping[bytes, str]
) -> Iterator[tuple[TopicPartition, int]]:
    """The error code of each partition: by topic id since version 5, by topic name before.

    Kafka: LeaderAndIsrResponse.partitionErrors.
    """
    for error in response.partition_errors:
        yield TopicPartition(error.topic_name, error.partition_index), error.error_code
    for topic in response.topics:
        name = topic_names.get(topic.topic_id)
        if name is not None:
            for error in topic.partition_errors:
                yield TopicPartition(name, error.partition_index), error.error_code
