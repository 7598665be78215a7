"""Brokers that start, fail, bounce, move or shut down, and replicas on log directories that fail.

| what happened | what follows |
| --- | --- |
| start | the others learn of it, it learns of every partition; its replicas go ONLINE; what had no leader is elected |
| failure | what it led goes OFFLINE and is elected anew; its replicas go OFFLINE and leave their ISRs |
| bounce | same id under a larger epoch: a failure, then a start |
| controlled shutdown | leaders move away, then followers leave their ISRs; the answer names what could not be moved |
| log directory failure | every replica there is asked; those that answer KAFKA_STORAGE_ERROR count as offline |

Kafka: the broker handlers of KafkaController.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
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


async def process_broker_change(c: Controllership) -> None:
    """Compare the registered brokers with those known."""
    context = c.context
    current = await c.client.brokers_and_epochs(c.watch(BrokerChange(), CHILDREN))
    known = context.live_or_shutting_down_broker_ids
    by_id = {broker.id: broker for broker in current}
    epochs = {broker.id: epoch for broker, epoch in current.items()}
    new = sorted(by_id.keys() - known)
    dead = sorted(known - by_id.keys())
    bounced = sorted(b for b in by_id.keys() & known if epochs[b] > (context.broker_epoch(b) or 0))
    logger.info("Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s", new, dead, bounced)
    for broker_id in bounced + dead:
        c.channel.remove_broker(broker_id)
    for broker_id in new + bounced:
        c.channel.add_broker(by_id[broker_id])
    if new:
        context.add_live_brokers({by_id[b]: epochs[b] for b in new})
        await on_broker_startup(c, new)
    if bounced:
        context.remove_live_brokers(bounced)
        await on_broker_failure(c, bounced)
        context.add_live_brokers({by_id[b]: epochs[b] for b in bounced})
        await on_broker_startup(c, bounced)
    if dead:
        context.remove_live_brokers(dead)
        await on_broker_failure(c, dead)


async def on_broker_startup(c: Controllership, broker_ids: list[int]) -> None:
    context = c.context
    for broker_id in broker_ids:
        context.replicas_on_offline_dirs.pop(broker_id, None)
    await c.send_update_metadata(context.live_or_shutting_down_broker_ids - set(broker_ids))
    await c.send_update_metadata(broker_ids, context.partitions_with_leaders)
    replicas = context.replicas_on_brokers(broker_ids)
    await c.replica_states.handle_state_changes(replicas, ReplicaState.ONLINE)
    await c.partition_states.trigger_online_state_change()
    await partition_reassignment.resume_where(
        c, lambda _, assignment: any(broker_id in assignment.target_replicas for broker_id in broker_ids)
    )
    await c.deletions.resume_for({replica.topic for replica in replicas if c.deletions.is_queued(replica.topic)})
    await c.watch_brokers(broker_ids)


async def on_broker_failure(c: Controllership, broker_ids: list[int]) -> None:
    context = c.context
    for broker_id in broker_ids:
        context.replicas_on_offline_dirs.pop(broker_id, None)
        context.shutting_down_broker_ids.discard(broker_id)
    await on_replicas_become_offline(c, context.replicas_on_brokers(broker_ids))


async def on_replicas_become_offline(c: Controllership, replicas: Iterable[PartitionAndReplica]) -> None:
    """Elect new leaders first, then shrink the ISRs."""
    context = c.context
    being_deleted: list[PartitionAndReplica] = []
    others: list[PartitionAndReplica] = []
    for replica in replicas:
        (being_deleted if c.deletions.is_queued(replica.topic) else others).append(replica)
    await c.partition_states.handle_state_changes(context.partitions_with_offline_leader, PartitionState.OFFLINE)
    elections = await c.partition_states.trigger_online_state_change()
    await c.replica_states.handle_state_changes(others, ReplicaState.OFFLINE)
    if being_deleted:
        await c.deletions.fail_replica_deletion(being_deleted)
    if not others and not any(isinstance(result, LeaderAndIsr) for result in elections.values()):
        # Nothing else told the brokers that one of them is gone.
        await c.send_update_metadata_to_all()


async def process_broker_modification(c: Controllership, broker_id: int) -> None:
    """A broker changed its registration: others need its new endpoints."""
    registered = await c.client.broker(broker_id, c.watch(BrokerModifications(broker_id), DATA_CHANGE))
    known = c.context.live_or_shutting_down_broker(broker_id)
    if registered is not None and known is not None and registered.end_points != known.end_points:
        logger.info("Updated broker metadata: %s -> %s", known, registered)
        c.context.update_broker(registered)
        await c.send_update_metadata_to_all()


async def do_controlled_shutdown(c: Controllership, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
    """Move away what a broker does; answers the replicated partitions that it still leads."""
    context = c.context
    known_epoch = context.broker_epoch(broker_id)
    if known_epoch is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
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
        if leadership is None or len(context.replicas(partition)) == 1 or c.deletions.is_queued(partition.topic):
            continue
        (led if leadership.leader_and_isr.leader == broker_id else followed).append(partition)
    await c.partition_states.handle_state_changes(led, PartitionState.ONLINE, ElectionStrategy.CONTROLLED_SHUTDOWN)
    for partition in followed:
        c.batch.add_stop_replica((broker_id,), partition, delete=False)
    c.send_batch()
    await c.replica_states.handle_state_changes(
        [PartitionAndReplica(partition, broker_id) for partition in followed], ReplicaState.OFFLINE
    )
    return context.partition_leaders_on_broker(broker_id)


async def process_log_dir_event(c: Controllership) -> None:
    """Ask the replicas of brokers that lost a log directory how they are."""
    watcher = c.watch(LogDirEventNotification(), CHILDREN)
    path = znodes.LOG_DIR_EVENT_NOTIFICATION
    names = await c.client.numbered_children(path, watcher)
    if not names:
        return
    events = await c.client.datas([f"{path}/{name}" for name in names])
    try:
        brokers = {broker for data in events if (broker := znodes.decode_log_dir_event(data)) is not None}
        logger.info("Handling log directory failure for brokers %s", sorted(brokers))
        await c.replica_states.handle_state_changes(c.context.replicas_on_brokers(brokers), ReplicaState.ONLINE)
    finally:
        await c.client.delete_children(path, names, c.fence)


async def process_leader_and_isr_response(c: Controllership, broker_id: int, response: LeaderAndIsrResponse) -> None:
    """Learn which replicas sit on failed log directories. Other errors of partitions are the broker's affair."""
    if response.error_code != ErrorCode.NONE:
        logger.error("Received error %d in LeaderAndIsr response from broker %d", response.error_code, broker_id)
        return
    offline: set[TopicPartition] = set()
    online: set[TopicPartition] = set()
    for topic in response.topics:
        name = c.context.topic_names.get(topic.topic_id)
        if name is None:
            continue
        for error in topic.partition_errors:
            partition = TopicPartition(name, error.partition_index)
            if error.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                offline.add(partition)
            elif error.error_code == ErrorCode.NONE:
                online.add(partition)
    known = c.context.replicas_on_offline_dirs.get(broker_id, frozenset())
    current = (known - online) | offline
    c.context.replicas_on_offline_dirs[broker_id] = frozenset(current)
    newly_offline = sorted(current - known)
    if newly_offline:
        logger.info("Mark replicas %s on broker %d as offline", ",".join(map(str, newly_offline)), broker_id)
        await on_replicas_become_offline(c, [PartitionAndReplica(p, broker_id) for p in newly_offline])
