"""Taking office: what a broker does between winning the election and serving as the controller.

The order matters. Watches are set before anything is read, so that no change falls between. Notifications that wait
are deleted unread, for everything is about to be read anyway. The brokers hear who is alive before they hear of any
partition: a follower does not fetch from a leader it does not know. Replicas are started before leaders are elected
for what has none.

Kafka: KafkaController.onControllerFailover.
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
from odradek.controller.znodes.features import set_up_features
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership

logger = logging.getLogger("odradek.controller")


async def on_controller_failover(c: Controllership, new_topic_id: Callable[[], bytes]) -> None:
    client = c.client
    await set_up_features(client, c.config.metadata_version)
    await client.children(znodes.BROKER_IDS, c.watch(BrokerChange(), CHILDREN))
    await client.topics(c.watch(TopicChange(), CHILDREN))
    await client.topic_deletions(c.watch(TopicDeletion(), CHILDREN))
    for path, event in (
        (znodes.LOG_DIR_EVENT_NOTIFICATION, LogDirEventNotification()),
        (znodes.ISR_CHANGE_NOTIFICATION, IsrChangeNotification()),
    ):
        names = await client.children(path, c.watch(event, CHILDREN))
        await client.delete_children(path, names, c.fence)
    await client.watch_existence(znodes.PREFERRED_REPLICA_ELECTION, c.watch(replica_elections.ZK_ELECTION, CREATION))
    await client.watch_existence(znodes.REASSIGN_PARTITIONS, c.watch(ZkPartitionReassignment(), CREATION))
    await _initialize_context(c, new_topic_id)
    await _initialize_deletions(c)
    await c.send_update_metadata_to_all()
    await c.replica_states.startup()
    await c.partition_states.startup()
    logger.info("Ready to serve as the new controller with epoch %d", c.context.epoch)
    await partition_reassignment.resume_after_failover(c)
    await c.deletions.try_topic_deletion()
    await replica_elections.resume_pending_elections(c)


async def _initialize_context(c: Controllership, new_topic_id: Callable[[], bytes]) -> None:
    context = c.context
    context.set_live_brokers(await c.client.brokers_and_epochs())
    context.all_topics = await c.client.topics()
    topics = context.all_topics
    assignments = await c.client.topic_assignments(topics, {topic: c.topic_watcher(topic) for topic in topics})
    await load_topics(c, assignments, new_topic_id)
    async for partition in in_turns(context.all_partitions):
        if context.full_assignment(partition).is_being_reassigned:
            context.partitions_being_reassigned.add(partition)
    await c.watch_brokers(sorted(context.live_or_shutting_down_broker_ids))
    await refresh_leadership(c, context.all_partitions)
    for broker in context.live_or_shutting_down_brokers:
        c.channel.add_broker(broker)
    logger.info("Currently active brokers in the cluster: %s", sorted(context.live_broker_ids))
    logger.info("Current list of topics in the cluster: %s", sorted(context.all_topics))


async def refresh_leadership(c: Controllership, partitions: list[TopicPartition]) -> None:
    states = await c.state_nodes.read_partition_states(partitions)
    async for partition, state in in_turns(states.items()):
        if state is not None:
            c.context.put_leadership(partition, state)


async def _initialize_deletions(c: Controllership) -> None:
    context = c.context
    to_be_deleted = await c.client.topic_deletions()
    ineligible = set()
    async for replica in in_turns(context.replicas_of_partitions(context.all_partitions)):
        if not context.is_replica_online(replica.replica, replica.topic_partition):
            ineligible.add(replica.topic)
    await c.deletions.initialize(to_be_deleted, ineligible)


async def process_isr_change_notification(c: Controllership) -> None:
    """A leader of before Kafka 2.7 wrote an ISR itself: read it again."""
    path = znodes.ISR_CHANGE_NOTIFICATION
    names = await c.client.numbered_children(path, c.watch(IsrChangeNotification(), CHILDREN))
    if not names:
        return
    try:
        changed = {
            partition
            for data in await c.client.datas([f"{path}/{name}" for name in names])
            for partition in znodes.decode_partitions(data)
            if c.context.replicas(partition)
        }
        if changed:
            await refresh_leadership(c, sorted(changed))
            await c.send_update_metadata_to_all(changed)
            for partition in sorted(changed):
                await partition_reassignment.maybe_complete(c, partition)
    finally:
        await c.client.delete_children(path, names, c.fence)
