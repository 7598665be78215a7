"""The five leader election strategies, as functions of the assignment, the ISR and the live replicas.

| strategy | new leader | new ISR | recipients of LeaderAndIsr |
| --- | --- | --- | --- |
| OFFLINE | first assigned replica that is live and in sync | live part of the ISR | live |
| OFFLINE, unclean, no live replica in the ISR | first assigned replica that is live | the leader | live |
| REASSIGN | first *target* replica that is live and in sync | unchanged | target replicas |
| PREFERRED | the first assigned replica, if live and in sync | unchanged | all assigned |
| CONTROLLED_SHUTDOWN | first assigned, in sync, not shutting down | minus shutting down | live or shutting down |

Every election that succeeds bumps the leader epoch; one that fails changes nothing. An unclean leader starts as
RECOVERING.

Kafka: Election, PartitionLeaderElectionAlgorithms, PartitionLeaderElectionStrategy.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, assert_never

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderRecoveryState

if TYPE_CHECKING:
    from odradek.controller.states.context import ControllerContext
    from odradek.protocol.topic_partition import TopicPartition


class ElectionStrategy(Enum):
    """The election strategies. With OFFLINE the topic's config must allow an unclean leader, with OFFLINE_UNCLEAN not.

    The values are the names in Kafka's error messages.
    """

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    OFFLINE_UNCLEAN = "OfflinePartitionLeaderElectionStrategy(true)"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


class ElectionResult(NamedTuple):
    """The state to write, None if the election failed, and the replicas that get LeaderAndIsr."""

    leader_and_isr: LeaderAndIsr | None
    recipients: tuple[int, ...]


def offline_leader(assignment: Sequence[int], isr: Sequence[int], live: Set[int], *, unclean: bool) -> int | None:
    for replica in assignment:
        if replica in live and replica in isr:
            return replica
    return next((replica for replica in assignment if replica in live), None) if unclean else None


def reassigned_leader(target: Sequence[int], isr: Sequence[int], live: Set[int]) -> int | None:
    return offline_leader(target, isr, live, unclean=False)


def preferred_leader(assignment: Sequence[int], isr: Sequence[int], live: Set[int]) -> int | None:
    return offline_leader(assignment[:1], isr, live, unclean=False)


def controlled_shutdown_leader(
    assignment: Sequence[int], isr: Sequence[int], live: Set[int], shutting_down: Set[int]
) -> int | None:
    return offline_leader(assignment, isr, live - shutting_down, unclean=False)


def elect(
    context: ControllerContext,
    partition: TopicPartition,
    current: LeaderAndIsr,
    strategy: ElectionStrategy,
    *,
    unclean_allowed: bool = False,
    has_leader_recovery: bool = True,
) -> ElectionResult:
    """Run a strategy for one partition. `unclean_allowed` is the topic's config and used by OFFLINE only. Without
    `has_leader_recovery` an unclean leader does not start as RECOVERING (KIP-704).
    """
    match strategy:
        case ElectionStrategy.OFFLINE:
            return _elect_offline(context, partition, current, unclean_allowed, has_leader_recovery)
        case ElectionStrategy.OFFLINE_UNCLEAN:
            return _elect_offline(context, partition, current, True, has_leader_recovery)
        case ElectionStrategy.REASSIGN:
            target = context.full_assignment(partition).target_replicas
            live = {replica for replica in target if context.is_replica_online(replica, partition)}
            return _keep_isr(current, reassigned_leader(target, current.isr, live), target)
        case ElectionStrategy.PREFERRED:
            assignment = context.replicas(partition)
            live = set(context.online_replicas(partition))
            return _keep_isr(current, preferred_leader(assignment, current.isr, live), assignment)
        case ElectionStrategy.CONTROLLED_SHUTDOWN:
            return _elect_for_controlled_shutdown(context, partition, current)
        case _:
            assert_never(strategy)


def _elect_offline(
    context: ControllerContext,
    partition: TopicPartition,
    current: LeaderAndIsr,
    unclean: bool,
    has_leader_recovery: bool,
) -> ElectionResult:
    live = context.online_replicas(partition)
    # The replica in sync may have left the assignment, so that it cannot lead; there is no unclean leader even then.
    unclean = unclean and not any(context.is_replica_online(replica, partition) for replica in current.isr)
    leader = offline_leader(context.replicas(partition), current.isr, set(live), unclean=unclean)
    if leader is None:
        return ElectionResult(None, live)
    if leader in current.isr:
        isr = tuple(replica for replica in current.isr if context.is_replica_online(replica, partition))
        return ElectionResult(current.with_new_leader_and_isr(leader, isr), live)
    # The leader's log may lack records that the others have, so no other replica is in sync with it.
    elected = current.with_new_leader_and_isr(leader, (leader,))
    if has_leader_recovery:
        elected = elected._replace(leader_recovery_state=LeaderRecoveryState.RECOVERING)
    return ElectionResult(elected, live)


def _elect_for_controlled_shutdown(
    context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr
) -> ElectionResult:
    up = context.online_replicas(partition, include_shutting_down=True)
    shutting_down = context.shutting_down_broker_ids
    leader = controlled_shutdown_leader(context.replicas(partition), current.isr, set(up), shutting_down)
    if leader is None:
        return ElectionResult(None, up)
    isr = tuple(replica for replica in current.isr if replica not in shutting_down)
    return ElectionResult(current.with_new_leader_and_isr(leader, isr), up)


def _keep_isr(current: LeaderAndIsr, leader: int | None, recipients: tuple[int, ...]) -> ElectionResult:
    return ElectionResult(None if leader is None else current.with_new_leader(leader), recipients)
