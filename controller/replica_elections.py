"""Leader elections on request (preferred or unclean), and the periodic election of preferred leaders.

The *preferred* leader of a partition is the first replica of its assignment. Assignments spread preferred leaders
evenly over the brokers. A broker that restarts leads no partition until the preferred leaders are elected.

Kafka: KafkaController.processReplicaLeaderElection, KafkaController.onReplicaElection,
KafkaController.checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from odradek.controller.controllership import CREATION
from odradek.controller.events import ElectionTrigger, ElectionType, ReplicaLeaderElection
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import NO_LEADER
from odradek.controller.states.leader_election import ElectionStrategy, preferred_leader
from odradek.controller.states.partition_states import LeadershipOrError, PartitionState, StateChangeFailed
from odradek.controller.znodes import znodes
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership
    from odradek.protocol.topic_partition import TopicPartition

logger = logging.getLogger("odradek.controller")

NAMED_MAX: Final = 1_000
"""Partitions that the line of an election names: 100,000 names would hold the event loop up."""

TOPIC_BEING_DELETED: Final = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
NOT_NEEDED: Final = KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
"""Results, not raised: a request may name 260,000 partitions, and an error of its own for each has 300 bytes."""

ZK_ELECTION = ReplicaLeaderElection(None, ElectionType.PREFERRED, ElectionTrigger.ZK)


async def process_replica_leader_election(
    controllership: Controllership, event: ReplicaLeaderElection
) -> dict[TopicPartition, int | KafkaError]:
    """Elect leaders for the partitions of the event, or for those in the tree. Returns the leader or error of each that
    exists.
    """
    partitions: Iterable[TopicPartition]
    if event.partitions is not None:
        partitions = event.partitions
    else:
        watcher = controllership.watch(ZK_ELECTION, CREATION)
        if not await controllership.client.watch_existence(znodes.PREFERRED_REPLICA_ELECTION, watcher):
            return {}
        partitions = await controllership.client.preferred_replica_election()
    results: dict[TopicPartition, int | KafkaError] = {}
    electable: list[TopicPartition] = []
    async for partition in in_turns(partitions):
        replicas = controllership.context.replicas(partition)
        if not replicas:
            continue
        refusal = _election_error(controllership, partition, replicas, event.election_type)
        if refusal is None:
            electable.append(partition)
        else:
            results[partition] = refusal
    code = (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if event.election_type is ElectionType.PREFERRED
        else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )
    for partition, result in (
        await on_replica_election(controllership, electable, event.election_type, event.trigger)
    ).items():
        if isinstance(result, StateChangeFailed):
            results[partition] = KafkaError(code, str(result))
        else:
            results[partition] = result.leader
    async for partition in in_turns(electable):
        if partition not in results:  # it had never had a leader, and the election was the first choice of one
            leadership = controllership.context.leadership(partition)
            results[partition] = (
                KafkaError(code, f"No replica of {partition} has been live since it was created")
                if leadership is None
                else leadership.leader_and_isr.leader
            )
    return results


def _election_error(
    controllership: Controllership, partition: TopicPartition, replicas: Sequence[int], election_type: ElectionType
) -> KafkaError | None:
    """The error if no election is possible or needed, else None."""
    if controllership.deletions.is_queued(partition.topic):
        return TOPIC_BEING_DELETED
    leadership = controllership.context.leadership(partition)
    leader = NO_LEADER if leadership is None else leadership.leader_and_isr.leader
    is_settled = (
        leader == replicas[0]
        if election_type is ElectionType.PREFERRED
        else controllership.context.is_live_broker(leader)
    )
    return NOT_NEEDED if is_settled else None


async def on_replica_election(
    controllership: Controllership,
    partitions: list[TopicPartition],
    election_type: ElectionType,
    trigger: ElectionTrigger,
) -> dict[TopicPartition, LeadershipOrError]:
    """Elect leaders. Only an ElectLeaders request for an unclean leader overrides the topic's config."""
    if election_type is ElectionType.PREFERRED:
        strategy = ElectionStrategy.PREFERRED
    elif trigger is ElectionTrigger.ADMIN_CLIENT:
        strategy = ElectionStrategy.OFFLINE_UNCLEAN
    else:
        strategy = ElectionStrategy.OFFLINE
    logger.info(
        "Starting replica leader election (%s) for partitions %s triggered by %s",
        election_type.name,
        _names(partitions),
        trigger.value,
    )
    try:
        results = await controllership.partition_states.handle_state_changes(
            partitions, PartitionState.ONLINE, strategy
        )
        if trigger is not ElectionTrigger.ADMIN_CLIENT:  # an administrator gets the errors in the answer
            async for partition, result in in_turns(results.items()):
                if isinstance(result, StateChangeFailed):
                    logger.error(
                        "Error completing replica leader election (%s) for partition %s: %s",
                        election_type.name,
                        partition,
                        result,
                    )
        return results
    finally:
        if trigger is ElectionTrigger.ZK:
            await controllership.client.delete_node(znodes.PREFERRED_REPLICA_ELECTION, controllership.fence)
            # This event sets the watch for the next node.
            controllership.put(ZK_ELECTION)


def _names(partitions: Sequence[TopicPartition]) -> str:
    names = ",".join(map(str, partitions[:NAMED_MAX]))
    return names if len(partitions) <= NAMED_MAX else f"{names} and {len(partitions) - NAMED_MAX} more"


async def resume_pending_elections(controllership: Controllership) -> None:
    """At failover: the elections in `/admin/preferred_replica_election` that are still needed.

    Kafka: KafkaController.fetchPendingPreferredReplicaElections.
    """
    context = controllership.context
    pending: list[TopicPartition] = []
    for partition in await controllership.client.preferred_replica_election():
        replicas = context.replicas(partition)
        leadership = context.leadership(partition)
        if leadership is None or not replicas or controllership.deletions.is_queued(partition.topic):
            continue
        if leadership.leader_and_isr.leader != replicas[0]:
            pending.append(partition)
    await on_replica_election(controllership, pending, ElectionType.PREFERRED, ElectionTrigger.ZK)


async def check_and_trigger_auto_leader_rebalance(controllership: Controllership) -> None:
    """Elect the preferred leaders of each broker if others lead more of its partitions than
    `leader.imbalance.per.broker.percentage`.
    """
    context = controllership.context
    by_preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.all_partitions:
        replicas = context.replicas(partition)
        if replicas and not controllership.deletions.is_queued(partition.topic):
            by_preferred.setdefault(replicas[0], []).append(partition)
    limit = controllership.config.leader_imbalance_per_broker_percentage / 100
    for broker_id, partitions in by_preferred.items():
        led_by_others = [
            partition for partition in partitions if _is_led_by_other(controllership, partition, broker_id)
        ]
        if len(led_by_others) / len(partitions) > limit:
            candidates = [
                partition for partition in led_by_others if _can_preferred_replica_be_leader(controllership, partition)
            ]
            await on_replica_election(controllership, candidates, ElectionType.PREFERRED, ElectionTrigger.AUTO)


def _is_led_by_other(controllership: Controllership, partition: TopicPartition, broker_id: int) -> bool:
    leadership = controllership.context.leadership(partition)
    return leadership is not None and leadership.leader_and_isr.leader != broker_id


def _can_preferred_replica_be_leader(controllership: Controllership, partition: TopicPartition) -> bool:
    leadership = controllership.context.leadership(partition)
    if leadership is None:
        return False
    live = set(controllership.context.online_replicas(partition))
    return preferred_leader(controllership.context.replicas(partition), leadership.leader_and_isr.isr, live) is not None
