"""Elections that somebody asks for: preferred leaders, unclean leaders, and the periodic balance of leadership.

The *preferred* leader of a partition is the first replica of its assignment. Assignments spread these evenly, so a
cluster in which everybody leads what is preferred of it is balanced; a broker that restarts leads nothing until
somebody gives it back.

Kafka: ReplicaLeaderElection and AutoPreferredReplicaLeaderElection of KafkaController.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

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

ZK_ELECTION = ReplicaLeaderElection(None, ElectionType.PREFERRED, ElectionTrigger.ZK)


async def process_election(c: Controllership, event: ReplicaLeaderElection) -> dict[TopicPartition, int | KafkaError]:
    """Elect leaders for the partitions asked for, or for those in the tree; the new leader or the error of each."""
    partitions: Iterable[TopicPartition]
    if event.partitions is not None:
        partitions = event.partitions
    else:
        watcher = c.watch(ZK_ELECTION, CREATION)
        if not await c.client.watch_existence(znodes.PREFERRED_REPLICA_ELECTION, watcher):
            return {}
        partitions = await c.client.preferred_replica_election()
    results: dict[TopicPartition, int | KafkaError] = {}
    electable: list[TopicPartition] = []
    async for partition in in_turns(partitions):
        refusal = _why_not(c, partition, event.election_type)
        if refusal is None:
            electable.append(partition)
        else:
            results[partition] = refusal
    code = (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if event.election_type is ElectionType.PREFERRED
        else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )
    for partition, result in (await elect_replicas(c, electable, event.election_type, event.trigger)).items():
        if isinstance(result, StateChangeFailed):
            results[partition] = KafkaError(code, str(result))
        else:
            results[partition] = result.leader
    return results


def _why_not(c: Controllership, partition: TopicPartition, election_type: ElectionType) -> KafkaError | None:
    """The reason not to hold an election, if there is one."""
    replicas = c.context.replicas(partition)
    if not replicas:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if c.deletions.is_queued(partition.topic):
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    leadership = c.context.leadership(partition)
    leader = NO_LEADER if leadership is None else leadership.leader_and_isr.leader
    is_settled = leader == replicas[0] if election_type is ElectionType.PREFERRED else c.context.is_live_broker(leader)
    return KafkaError(ErrorCode.ELECTION_NOT_NEEDED) if is_settled else None


async def elect_replicas(
    c: Controllership, partitions: list[TopicPartition], election_type: ElectionType, trigger: ElectionTrigger
) -> dict[TopicPartition, LeadershipOrError]:
    """Hold elections. Only an administrator's request for an unclean leader overrides the topic's config."""
    if election_type is ElectionType.PREFERRED:
        strategy = ElectionStrategy.PREFERRED
    elif trigger is ElectionTrigger.ADMIN_CLIENT:
        strategy = ElectionStrategy.OFFLINE_UNCLEAN
    else:
        strategy = ElectionStrategy.OFFLINE
    try:
        return await c.partition_states.handle_state_changes(partitions, PartitionState.ONLINE, strategy)
    finally:
        if trigger is ElectionTrigger.ZK:
            await c.client.delete_node(znodes.PREFERRED_REPLICA_ELECTION, c.fence)
            # Watch for the next one.
            c.put(ZK_ELECTION)


async def resume_pending_elections(c: Controllership) -> None:
    """At failover: what the tree asks for and is not the case yet."""
    context = c.context
    pending: list[TopicPartition] = []
    for partition in await c.client.preferred_replica_election():
        replicas = context.replicas(partition)
        leadership = context.leadership(partition)
        if leadership is None or not replicas or c.deletions.is_queued(partition.topic):
            continue
        if leadership.leader_and_isr.leader != replicas[0]:
            pending.append(partition)
    await elect_replicas(c, pending, ElectionType.PREFERRED, ElectionTrigger.ZK)


async def balance_leaders(c: Controllership) -> None:
    """Give brokers back what they should lead where too much of it is led by others."""
    context = c.context
    by_preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.all_partitions:
        replicas = context.replicas(partition)
        if replicas and not c.deletions.is_queued(partition.topic):
            by_preferred.setdefault(replicas[0], []).append(partition)
    limit = c.config.leader_imbalance_per_broker_percentage / 100
    for broker_id, partitions in by_preferred.items():
        strayed = [partition for partition in partitions if _is_led_by_other(c, partition, broker_id)]
        if len(strayed) / len(partitions) > limit:
            candidates = [partition for partition in strayed if _can_preferred_lead(c, partition)]
            await elect_replicas(c, candidates, ElectionType.PREFERRED, ElectionTrigger.AUTO)


def _is_led_by_other(c: Controllership, partition: TopicPartition, broker_id: int) -> bool:
    leadership = c.context.leadership(partition)
    return leadership is not None and leadership.leader_and_isr.leader != broker_id


def _can_preferred_lead(c: Controllership, partition: TopicPartition) -> bool:
    leadership = c.context.leadership(partition)
    if leadership is None:
        return False
    live = set(c.context.online_replicas(partition))
    return preferred_leader(c.context.replicas(partition), leadership.leader_and_isr.isr, live) is not None
