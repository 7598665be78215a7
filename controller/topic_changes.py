"""Topics and partitions that appear, disappear or are to be deleted.

Kafka: the TopicChange, PartitionModifications and TopicDeletion handlers of KafkaController.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.controller.controllership import CHILDREN
from odradek.controller.events import TopicChange, TopicDeletion, TopicDeletionStopReplicaResponseReceived
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.leader_election import ElectionStrategy
from odradek.controller.states.partition_states import PartitionState
from odradek.controller.states.replica_states import ReplicaState
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import TOPICS_A_TURN
from odradek.controller.znodes.topic_nodes import TopicIdReplicaAssignment
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.controller.controllership import Controllership

logger = logging.getLogger("odradek.controller")


async def on_new_partitions(c: Controllership, partitions: Sequence[TopicPartition]) -> None:
    """Give new partitions a leader and start their replicas."""
    replicas = c.context.replicas_of_partitions(partitions)
    await c.partition_states.handle_state_changes(partitions, PartitionState.NEW)
    await c.replica_states.handle_state_changes(replicas, ReplicaState.NEW)
    await c.partition_states.handle_state_changes(partitions, PartitionState.ONLINE, ElectionStrategy.OFFLINE)
    await c.replica_states.handle_state_changes(replicas, ReplicaState.ONLINE)


async def process_topic_change(c: Controllership, new_topic_id: Callable[[], bytes]) -> None:
    """The list of topics changed."""
    context = c.context
    topics = await c.client.topics(c.watch(TopicChange(), CHILDREN))
    new_topics = topics - context.all_topics
    deleted_topics = context.all_topics - topics
    context.all_topics = set(topics)
    assignments = await c.client.topic_assignments(new_topics, {topic: c.topic_watcher(topic) for topic in new_topics})
    for topic in deleted_topics:
        c.replica_states.remove_topic(topic)
        c.partition_states.remove_topic(topic)
        context.remove_topic(topic)
    added = await load_topics(c, assignments, new_topic_id)
    logger.info("New topics: %s, deleted topics: %s", sorted(new_topics), sorted(deleted_topics))
    if added:
        await on_new_partitions(c, added)


async def load_topics(
    c: Controllership, assignments: Sequence[TopicIdReplicaAssignment], new_topic_id: Callable[[], bytes]
) -> list[TopicPartition]:
    """Take topics into the context, giving an id to those that have none. Answers their partitions.

    An inter-broker protocol without topic ids leaves topics as they are; an id that is there stays in what is written.
    """
    partitions: list[TopicPartition] = []
    async for loaded in in_turns(assignments, TOPICS_A_TURN):
        topic = loaded
        if topic.topic_id is None and c.config.metadata_version.has_topic_ids:
            topic = replace(topic, topic_id=new_topic_id())
            await c.client.set_topic_assignment(topic.topic, topic.topic_id, topic.assignment, c.fence)
        if topic.topic_id is not None:
            c.context.add_topic_id(topic.topic, topic.topic_id)
        async for partition, assignment in in_turns(topic.assignment.items()):
            topic_partition = TopicPartition(topic.topic, partition)
            c.context.update_assignment(topic_partition, assignment)
            partitions.append(topic_partition)
    return partitions


async def process_partition_modifications(c: Controllership, topic: str) -> None:
    """A topic node changed. Only added partitions matter: everything else in it was written by the controller."""
    context = c.context
    found = await c.client.topic_assignments([topic], {topic: c.topic_watcher(topic)})
    assignment = found[0].assignment if found else {}
    added = {p: a for p, a in assignment.items() if not context.replicas(TopicPartition(topic, p))}
    if c.deletions.is_queued(topic):
        if added:
            logger.warning("Skipping adding partitions %s of topic %s, which is being deleted", sorted(added), topic)
            await _restore_assignment(c, topic)
        return
    if added:
        partitions = [TopicPartition(topic, partition) for partition in added]
        for partition in partitions:
            context.update_assignment(partition, added[partition.partition])
        logger.info("New partitions to be added: %s", ",".join(map(str, partitions)))
        await on_new_partitions(c, partitions)


async def _restore_assignment(c: Controllership, topic: str) -> None:
    """Take back partitions added to a topic that is being deleted."""
    existing = {int(name) for name in await c.client.children(znodes.topic_partitions_path(topic))}
    known = {p: a for p, a in c.context.assignments_of(topic).items() if p in existing}
    await c.client.set_topic_assignment(topic, c.context.topic_ids.get(topic), known, c.fence)


async def process_topic_deletion(c: Controllership) -> None:
    """The list of topics to delete changed."""
    context = c.context
    to_be_deleted = await c.client.topic_deletions(c.watch(TopicDeletion(), CHILDREN))
    unknown = to_be_deleted - context.all_topics
    if unknown:
        logger.warning("Ignoring request to delete non-existing topics %s", sorted(unknown))
        await c.client.remove_topic_deletions(unknown, c.fence)
    to_be_deleted -= unknown
    if not c.config.delete_topic_enable:
        logger.info("Removing %s since delete topic is disabled", sorted(to_be_deleted))
        await c.client.remove_topic_deletions(to_be_deleted, c.fence)
    elif to_be_deleted:
        logger.info("Starting topic deletion for topics %s", sorted(to_be_deleted))
        await c.deletions.enqueue(to_be_deleted)


async def process_stop_replica_response(c: Controllership, event: TopicDeletionStopReplicaResponseReceived) -> None:
    """A broker deleted replicas, or failed to."""
    failed: list[PartitionAndReplica] = []
    deleted: list[PartitionAndReplica] = []
    for partition, code in event.partition_errors.items():
        is_deleted = event.error_code == ErrorCode.NONE and code == ErrorCode.NONE
        (deleted if is_deleted else failed).append(PartitionAndReplica(partition, event.broker_id))
    await c.deletions.fail_replica_deletion(failed)
    if deleted:
        await c.deletions.complete_replica_deletion(deleted)
