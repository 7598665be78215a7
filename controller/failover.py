"""Controller failover: the steps between a won election and serving as the controller.

The order matters. Watches are set before anything is read, so that no change is missed. Waiting notifications are
deleted unread, because all state is read afterwards. The brokers get the live brokers before any partition, because a
follower does not fetch from an unknown leader. Replicas are started before partitions without a leader get an election.

Kafka: KafkaController.onControllerFailover, KafkaController.initializeControllerContext.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.controller import partition_reassignment, replica_elections
from odradek.controller.controllership import CHILDREN, CREATION
from odradek.controller.events import (
    BrokerChange,
    IsrChangeNotification,
    LogDirEventNotification,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from odradek.controller.loop_turns import in_turns
from odradek.controller.topic_changes import load_topics
from odradek.controller.znodes import znodes
from odradek.controller.znodes.features import maybe_setup_feature_versioning
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership

logger = logging.getLogger("odradek.controller")


async def on_controller_failover(controllership: Controllership, new_topic_id: Callable[[], bytes]) -> None:
    client = controllership.client
    await maybe_setup_feature_versioning(client, controllership.config.metadata_version)
    await client.children(znodes.BROKER_IDS, controllership.watch(BrokerChange(), CHILDREN))
    await client.topics(controllership.watch(TopicChange(), CHILDREN))
    await client.topic_deletions(controllership.watch(TopicDeletion(), CHILDREN))
    for path, event in (
        (znodes.LOG_DIR_EVENT_NOTIFICATION, LogDirEventNotification()),
        (znodes.ISR_CHANGE_NOTIFICATION, IsrChangeNotification()),
    ):
        names = await client.children(path, controllership.watch(event, CHILDREN))
        await client.delete_children(path, names, controllership.fence)
    await client.watch_existence(
        znodes.PREFERRED_REPLICA_ELECTION, controllership.watch(replica_elections.ZK_ELECTION, CREATION)
    )
    await client.watch_existence(znodes.REASSIGN_PARTITIONS, controllership.watch(ZkPartitionReassignment(), CREATION))
    await _initialize_context(controllership, new_topic_id)
    await _initialize_deletions(controllership)
    await controllership.send_update_metadata_to_all()
    await controllership.replica_states.startup()
    await controllership.partition_states.startup()
    logger.info("Ready to serve as the new controller with epoch %d", controllership.context.epoch)
    await partition_reassignment.resume_after_failover(controllership)
    await controllership.deletions.try_topic_deletion()
    await replica_elections.resume_pending_elections(controllership)


async def _initialize_context(controllership: Controllership, new_topic_id: Callable[[], bytes]) -> None:
    context = controllership.context
    context.set_live_brokers(await controllership.client.brokers_and_epochs())
    context.all_topics = await controllership.client.topics()
    topics = context.all_topics
    assignments = await controllership.client.topic_assignments(
        topics, {topic: controllership.topic_watcher(topic) for topic in topics}
    )
    await load_topics(controllership, assignments, new_topic_id)
    async for partition in in_turns(context.all_partitions):
        if context.full_assignment(partition).is_being_reassigned:
            context.partitions_being_reassigned.add(partition)
    await controllership.watch_brokers(sorted(context.live_or_shutting_down_broker_ids))
    await update_leader_and_isr_cache(controllership, context.all_partitions)
    for broker in context.live_or_shutting_down_brokers:
        controllership.channel.add_broker(broker)
    logger.info("Currently active brokers in the cluster: %s", sorted(context.live_broker_ids))
    logger.info("Current list of topics in the cluster: %s", sorted(context.all_topics))


async def update_leader_and_isr_cache(controllership: Controllership, partitions: list[TopicPartition]) -> None:
    states = await controllership.state_nodes.read_partition_states(partitions)
    async for partition, state in in_turns(states.items()):
        if state is not None:
            controllership.context.put_leadership(partition, state)


async def _initialize_deletions(controllership: Controllership) -> None:
    context = controllership.context
    to_be_deleted = await controllership.client.topic_deletions()
    ineligible = set()
    async for replica in in_turns(context.replicas_of_partitions(context.all_partitions)):
        if not context.is_replica_online(replica.replica, replica.topic_partition):
            ineligible.add(replica.topic)
    await controllership.deletions.initialize(to_be_deleted, ineligible)


async def process_isr_change_notification(controllership: Controllership) -> None:
    """A leader with a Kafka before 2.7 has written an ISR itself: read it again.

    Kafka: KafkaController.processIsrChangeNotification.
    """
    path = znodes.ISR_CHANGE_NOTIFICATION
    names = await controllership.client.numbered_children(path, controllership.watch(IsrChangeNotification(), CHILDREN))
    if not names:
        return
    try:
        changed = {
            partition
            for data in await controllership.client.datas([f"{path}/{name}" for name in names])
            for partition in znodes.decode_partitions(data)
            if controllership.context.replicas(partition)
        }
        if changed:
            await update_leader_and_isr_cache(controllership, sorted(changed))
            await controllership.send_update_metadata_to_all(changed)
            for partition in sorted(changed):
                await partition_reassignment.maybe_complete_reassignment(controllership, partition)
    finally:
        await controllership.client.delete_children(path, names, controllership.fence)
