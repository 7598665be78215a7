"""Topics and partitions that are created or deleted.

Kafka: KafkaController.processTopicChange, KafkaController.processPartitionModifications,
KafkaController.processTopicDeletion, KafkaController.onNewPartitionCreation.
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

logger = logging.getLogger(__name__)


async def on_new_partition_creation(controllership: Controllership, partitions: Sequence[TopicPartition]) -> None:
    """Elect leaders for new partitions and start their replicas."""
    replicas = controllership.context.replicas_of_partitions(partitions)
    await controllership.partition_states.handle_state_changes(partitions, PartitionState.NEW)
    await controllership.replica_states.handle_state_changes(replicas, ReplicaState.NEW)
    await controllership.partition_states.handle_state_changes(
        partitions, PartitionState.ONLINE, ElectionStrategy.OFFLINE
    )
    await controllership.replica_states.handle_state_changes(replicas, ReplicaState.ONLINE)


async def process_topic_change(controllership: Controllership, new_topic_id: Callable[[], bytes]) -> None:
    """The list of topics changed."""
    context = controllership.context
    topics = await controllership.client.topics(controllership.watch(TopicChange(), CHILDREN))
    new_topics = topics - context.all_topics
    deleted_topics = context.all_topics - topics
    context.all_topics = topics
    assignments = await controllership.client.topic_assignments(
        new_topics, {topic: controllership.topic_watcher(topic) for topic in new_topics}
    )
    for topic in deleted_topics:
        controllership.replica_states.remove_topic(topic)
        controllership.partition_states.remove_topic(topic)
        context.remove_topic(topic)
    added = await load_topics(controllership, assignments, new_topic_id)
    logger.info("New topics: %s, deleted topics: %s", sorted(new_topics), sorted(deleted_topics))
    if added:
        await on_new_partition_creation(controllership, added)


async def load_topics(
    controllership: Controllership, assignments: Sequence[TopicIdReplicaAssignment], new_topic_id: Callable[[], bytes]
) -> list[TopicPartition]:
    """Add topics to the context, and write an id for those without one. Returns their partitions.

    With an inter-broker protocol without topic ids, no ids are created; existing ids stay.
    Kafka: KafkaController.processTopicIds.
    """
    partitions: list[TopicPartition] = []
    async for loaded in in_turns(assignments, TOPICS_A_TURN):
        topic = loaded
        if topic.topic_id is None and controllership.config.metadata_version.has_topic_ids:
            topic = replace(topic, topic_id=new_topic_id())
            await controllership.client.set_topic_assignment(
                topic.topic, topic.topic_id, topic.assignment, controllership.fence
            )
        if topic.topic_id is not None:
            controllership.context.add_topic_id(topic.topic, topic.topic_id)
        async for partition, assignment in in_turns(topic.assignment.items()):
            topic_partition = TopicPartition(topic.topic, partition)
            controllership.context.update_assignment(topic_partition, assignment)
            partitions.append(topic_partition)
    return partitions


async def process_partition_modifications(controllership: Controllership, topic: str) -> None:
    """A topic node changed. Only added partitions matter: the controller itself writes all other changes."""
    context = controllership.context
    found = await controllership.client.topic_assignments([topic], {topic: controllership.topic_watcher(topic)})
    assignment = found[0].assignment if found else {}
    added = {p: a for p, a in assignment.items() if not context.replicas(TopicPartition(topic, p))}
    if controllership.deletions.is_queued(topic):
        if added:
            logger.warning("Skipping adding partitions %s of topic %s, which is being deleted", sorted(added), topic)
            await _restore_assignment(controllership, topic)
        return
    if added:
        partitions = [TopicPartition(topic, partition) for partition in added]
        for partition in partitions:
            context.update_assignment(partition, added[partition.partition])
        logger.info("New partitions to be added: %s", ",".join(map(str, partitions)))
        await on_new_partition_creation(controllership, partitions)


async def _restore_assignment(controllership: Controllership, topic: str) -> None:
    """Remove the partitions added to a topic that is being deleted.

    Kafka: KafkaController.restorePartitionReplicaAssignment.
    """
    existing = {int(name) for name in await controllership.client.children(znodes.topic_partitions_path(topic))}
    known = {p: a for p, a in controllership.context.assignments_of(topic).items() if p in existing}
    await controllership.client.set_topic_assignment(
        topic, controllership.context.topic_ids.get(topic), known, controllership.fence
    )


async def process_topic_deletion(controllership: Controllership) -> None:
    """The list of topics to delete changed."""
    context = controllership.context
    to_be_deleted = await controllership.client.topic_deletions(controllership.watch(TopicDeletion(), CHILDREN))
    unknown = to_be_deleted - context.all_topics
    if unknown:
        logger.warning("Ignoring request to delete non-existing topics %s", sorted(unknown))
        await controllership.client.remove_topic_deletions(unknown, controllership.fence)
    to_be_deleted -= unknown
    if not controllership.config.delete_topic_enable:
        logger.info("Removing %s since delete topic is disabled", sorted(to_be_deleted))
        await controllership.client.remove_topic_deletions(to_be_deleted, controllership.fence)
    elif to_be_deleted:
        logger.info("Starting topic deletion for topics %s", sorted(to_be_deleted))
        await controllership.deletions.enqueue_topics_for_deletion(to_be_deleted)


async def process_topic_deletion_stop_replica_response(
    controllership: Controllership, event: TopicDeletionStopReplicaResponseReceived
) -> None:
    """A broker has deleted replicas, or failed to."""
    failed: list[PartitionAndReplica] = []
    deleted: list[PartitionAndReplica] = []
    for partition, code in event.partition_errors.items():
        is_deleted = event.error_code == ErrorCode.NONE and code == ErrorCode.NONE
        (deleted if is_deleted else failed).append(PartitionAndReplica(partition, event.broker_id))
    await controllership.deletions.fail_replica_deletion(failed)
    if deleted:
        await controllership.deletions.complete_replica_deletion(deleted)
