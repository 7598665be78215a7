"""Deletes the topics in `/admin/delete_topics`.

A topic to be deleted is *queued*, which ends its reassignments. It is *ineligible* while one of its replicas is offline
or the deletion of a replica has failed; the start of a broker resumes the deletion. The steps:

1. its partitions go OFFLINE, then NON_EXISTENT; 2. UpdateMetadata with leader -2 makes every broker remove the topic
from its metadata cache; 3. replicas on dead brokers become DELETION_INELIGIBLE, which makes the topic ineligible; the
others go OFFLINE (StopReplica without deletion: a follower must stop fetching first), then DELETION_STARTED
(StopReplica with deletion); 4. each response changes its replica to DELETION_SUCCESSFUL or DELETION_INELIGIBLE;
5. when all are successful, the nodes of the topic, of its config and of the deletion request are deleted, in this
order.

If the controller fails at any step, the request is still in the tree and the next controller starts again.

Kafka: TopicDeletionManager.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from odradek.controller.loop_turns import in_turns
from odradek.controller.states.partition_states import PartitionState, PartitionStateMachine
from odradek.controller.states.replica_states import ReplicaState, ReplicaStateMachine

if TYPE_CHECKING:
    from odradek.controller.model.replica import PartitionAndReplica
    from odradek.controller.states.context import ControllerContext
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class TopicDeletionManager:
    """See the module. With delete.topic.enable=false, requests are removed from the tree and nothing is deleted."""

    def __init__(
        self,
        *,
        context: ControllerContext,
        client: MetadataClient,
        partition_states: PartitionStateMachine,
        replica_states: ReplicaStateMachine,
        send_update_metadata: Callable[[Iterable[TopicPartition]], Awaitable[None]],
        is_enabled: bool,
    ) -> None:
        self._context = context
        self._client = client
        self._partition_states = partition_states
        self._replica_states = replica_states
        self._send_update_metadata = send_update_metadata
        self._is_enabled = is_enabled

    async def initialize(self, to_be_deleted: set[str], ineligible: set[str]) -> None:
        """At failover: set the waiting requests, and the topics that cannot be deleted now.

        Kafka: TopicDeletionManager.init.
        """
        if self._is_enabled:
            self._context.queue_topic_deletion(to_be_deleted)
            self._context.topics_ineligible_for_deletion |= ineligible & self._context.topics_to_be_deleted
        elif to_be_deleted:
            logger.info("Removing %s since delete topic is disabled", sorted(to_be_deleted))
            await self._client.remove_topic_deletions(to_be_deleted, self._context.epoch_zk_version)

    async def try_topic_deletion(self) -> None:
        if self._is_enabled:
            await self._resume_deletions()

    async def enqueue_topics_for_deletion(self, topics: set[str]) -> None:
        """Queue topics and start their deletion."""
        if self._is_enabled:
            self._context.queue_topic_deletion(topics)
            await self._resume_deletions()

    async def resume_deletion_for_topics(self, topics: Iterable[str]) -> None:
        """These topics are no longer ineligible: resume their deletion."""
        queued = set(topics) & self._context.topics_to_be_deleted
        if self._is_enabled and queued:
            self._context.topics_ineligible_for_deletion -= queued
            await self._resume_deletions()

    async def fail_replica_deletion(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """These replicas cannot be deleted now."""
        failed = [replica for replica in replicas if self.is_queued(replica.topic)]
        if failed:
            topics = {replica.topic for replica in failed}
            await self._replica_states.handle_state_changes(failed, ReplicaState.DELETION_INELIGIBLE)
            self._mark_topics_ineligible_for_deletion(topics, "replica deletion failure")
            await self._resume_deletions()

    async def complete_replica_deletion(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """Brokers have deleted these replicas."""
        deleted = [replica for replica in replicas if self.is_queued(replica.topic)]
        await self._replica_states.handle_state_changes(deleted, ReplicaState.DELETION_SUCCESSFUL)
        await self._resume_deletions()

    def _mark_topics_ineligible_for_deletion(self, topics: set[str], reason: str) -> None:
        self._context.topics_ineligible_for_deletion |= topics
        logger.info("Halted deletion of topics %s due to %s", sorted(topics), reason)

    def is_queued(self, topic: str) -> bool:
        return self._is_enabled and self._context.is_topic_queued_for_deletion(topic)

    def _is_topic_eligible_for_deletion(self, topic: str) -> bool:
        return (
            self._context.is_topic_queued_for_deletion(topic)
            and not self._replica_states.is_any_replica_in_state(topic, ReplicaState.DELETION_STARTED)
            and topic not in self._context.topics_ineligible_for_deletion
        )

    async def _resume_deletions(self) -> None:
        replica_states = self._replica_states
        to_retry: list[str] = []
        eligible: list[str] = []
        async for topic in in_turns(sorted(self._context.topics_to_be_deleted)):
            if replica_states.are_all_replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL):
                await self._complete_delete_topic(topic)
            elif not replica_states.is_any_replica_in_state(
                topic, ReplicaState.DELETION_STARTED
            ) and replica_states.is_any_replica_in_state(topic, ReplicaState.DELETION_INELIGIBLE):
                to_retry.append(topic)
            if self._is_topic_eligible_for_deletion(topic):
                logger.info("Deletion of topic %s (re)started", topic)
                eligible.append(topic)
        failed = [
            replica
            for topic in to_retry
            for replica in replica_states.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE)
        ]
        if failed:
            await replica_states.handle_state_changes(failed, ReplicaState.OFFLINE)
        if eligible:
            await self._on_topic_deletion(eligible)

    async def _on_topic_deletion(self, topics: list[str]) -> None:
        context = self._context
        unseen = [topic for topic in topics if not context.is_topic_deletion_in_progress(topic)]
        partitions = [partition for topic in unseen for partition in context.partitions_of(topic)]
        await self._partition_states.handle_state_changes(partitions, PartitionState.OFFLINE)
        await self._partition_states.handle_state_changes(partitions, PartitionState.NON_EXISTENT)
        context.topics_with_deletion_started.update(unseen)
        await self._send_update_metadata([partition for topic in topics for partition in context.partitions_of(topic)])
        await self._on_partition_deletion(topics)

    async def _on_partition_deletion(self, topics: list[str]) -> None:
        dead: list[PartitionAndReplica] = []
        to_delete: list[PartitionAndReplica] = []
        replicas = self._context.replicas_of_partitions(
            [partition for topic in topics for partition in self._context.partitions_of(topic)]
        )
        async for replica in in_turns(replicas):
            if not self._context.is_replica_online(replica.replica, replica.topic_partition):
                dead.append(replica)
            elif self._replica_states.state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                to_delete.append(replica)
        await self._replica_states.handle_state_changes(dead, ReplicaState.DELETION_INELIGIBLE)
        await self._replica_states.handle_state_changes(to_delete, ReplicaState.OFFLINE)
        await self._replica_states.handle_state_changes(to_delete, ReplicaState.DELETION_STARTED)
        if dead:
            self._mark_topics_ineligible_for_deletion({replica.topic for replica in dead}, "offline replicas")

    async def _complete_delete_topic(self, topic: str) -> None:
        deleted = self._replica_states.replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL)
        await self._replica_states.handle_state_changes(deleted, ReplicaState.NON_EXISTENT)
        await self._client.delete_topic(topic, self._context.epoch_zk_version)
        self._partition_states.remove_topic(topic)
        self._context.remove_topic(topic)
        logger.info("Deletion of topic %s successfully completed", topic)
