"""Moving partitions to other brokers (KIP-455), step by step.

With ORS the original, TRS the target replicas and ISR as in the tree:

* **always**: the topic node and the cache get the assignment *before* anything else, so that the next controller can go
  on; replicas that only a superseded reassignment wanted are stopped and deleted.
* **A**, while TRS ⊄ ISR: the leader epoch is bumped and everybody gets LeaderAndIsr with the adding and removing
  replicas (`is_new` for those being added: they may choose a log directory); the adding replicas become NEW and start
  to fetch.
* **B**, once TRS ⊆ ISR: adding replicas go ONLINE; the cache takes TRS as the assignment; the leader moves if it is
  not in TRS or not alive, else only its epoch; the removed replicas go OFFLINE (out of the ISR) and are deleted,
  without waiting for their answers; the topic node gets TRS, last, because until then it is the only place that knows
  ORS; everybody gets UpdateMetadata.

Whether B is due is asked when an ISR grows (AlterPartition), when a broker starts, and at failover. The deletion of the
topic ends it all. (Kafka means to wait with the deletion, but marks topics before they are queued, without effect; only
its next controller waits, for moves that may never end.)

Kafka: the reassignment part of KafkaController.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from odradek.controller.controllership import CREATION
from odradek.controller.events import ZkPartitionReassignment
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.leader_election import ElectionStrategy
from odradek.controller.states.partition_states import PartitionState, StateChangeFailed
from odradek.controller.states.replica_states import ReplicaState
from odradek.controller.tree.metadata_tree import SessionExpired, TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership
    from odradek.protocol.topic_partition import TopicPartition

logger = logging.getLogger("odradek.controller")


async def process_api_reassignment(
    c: Controllership, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> dict[TopicPartition, KafkaError | None]:
    """Start, supersede or (with None) cancel reassignments. They take precedence over those in the tree."""
    results: dict[TopicPartition, KafkaError | None] = {}
    accepted: dict[TopicPartition, ReplicaAssignment] = {}
    async for partition, target in in_turns(targets.items()):
        error = None if target is None else _validate_target(c, partition, target)
        reassignment = None if error is not None else _build(c, partition, target)
        if error is not None:
            results[partition] = error
        elif reassignment is None:
            results[partition] = KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        else:
            accepted[partition] = reassignment
    await _remove_from_tree(c, lambda partition, _: partition in accepted)
    results.update(await _trigger(c, accepted))
    return results


def _validate_target(c: Controllership, partition: TopicPartition, target: tuple[int, ...]) -> KafkaError | None:
    def invalid(message: str) -> KafkaError:
        # As long as an answer can hold: it repeats what the client has sent.
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message[:MAX_STRING_BYTES])

    if not target:
        return invalid("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        return invalid(f"Duplicate replica ids in partition reassignment replica list: {list(target)}")
    if min(target) < 0:
        return invalid(f"Invalid broker id in replica list: {list(target)}")
    adding = c.context.full_assignment(partition).reassign_to(target).adding_replicas
    live = c.context.live_broker_ids
    if not live.issuperset(adding):
        return invalid(
            f"Replica assignment has brokers that are not alive. Replica list: {list(adding)}, "
            f"live broker list: {sorted(live)}"
        )
    return None


def _build(c: Controllership, partition: TopicPartition, target: tuple[int, ...] | None) -> ReplicaAssignment | None:
    """The assignment while moving to the target; None to cancel what is not going on."""
    current = c.context.full_assignment(partition)
    if target is None:
        return current.reassign_to(current.origin_replicas) if current.is_being_reassigned else None
    return current.reassign_to(target)


async def under_way(
    c: Controllership, partitions: Collection[TopicPartition] | None
) -> dict[TopicPartition, ReplicaAssignment]:
    """Those of the partitions (of all, for None) that are being reassigned."""
    found = {}
    async for partition in in_turns(tuple(c.context.partitions_being_reassigned) if partitions is None else partitions):
        assignment = c.context.full_assignment(partition)
        if assignment.is_being_reassigned:
            found[partition] = assignment
    return found


async def process_zk_reassignment(c: Controllership) -> set[TopicPartition]:
    """Start what `/admin/reassign_partitions` asks for; the partitions that were started."""
    if not await _is_in_tree(c):
        return set()
    try:
        targets = await c.client.partition_reassignment()
    except BadZnode as error:
        logger.error("Ignoring a reassignment that cannot be read: %s", error)
        await c.client.delete_node(znodes.REASSIGN_PARTITIONS, c.fence)
        return set()
    accepted = {partition: c.context.full_assignment(partition).reassign_to(to) for partition, to in targets.items()}
    results = await _trigger(c, accepted)
    failed = {partition: error for partition, error in results.items() if error is not None}
    if failed:
        logger.warning("Failed reassignment through zk with the following errors: %s", failed)
        await _remove_from_tree(c, lambda partition, _: partition in failed)
    return results.keys() - failed.keys()


async def _trigger(
    c: Controllership, reassignments: Mapping[TopicPartition, ReplicaAssignment]
) -> dict[TopicPartition, KafkaError | None]:
    results: dict[TopicPartition, KafkaError | None] = {}
    async for partition, reassignment in in_turns(reassignments.items()):
        if c.deletions.is_queued(partition.topic) or not c.context.replicas(partition):
            results[partition] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
            continue
        results[partition] = await _advance(c, partition, reassignment)
    return results


async def _advance(c: Controllership, partition: TopicPartition, reassignment: ReplicaAssignment) -> KafkaError | None:
    """Take the next step. One that fails keeps no other from going on, nor the controller from taking office."""
    try:
        await on_partition_reassignment(c, partition, reassignment)
    except SessionExpired:
        raise
    except (StateChangeFailed, TreeError) as error:
        logger.error("Error completing reassignment of partition %s: %r", partition, error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


async def resume_where(c: Controllership, should_resume: Callable[[TopicPartition, ReplicaAssignment], bool]) -> None:
    """Take the next step of those reassignments that are under way."""
    for partition in sorted(c.context.partitions_being_reassigned):
        assignment = c.context.full_assignment(partition)
        if should_resume(partition, assignment):
            await _advance(c, partition, assignment)


async def resume_after_failover(c: Controllership) -> None:
    started = await process_zk_reassignment(c)
    await resume_where(c, lambda partition, _: partition not in started)


async def maybe_complete(c: Controllership, partition: TopicPartition) -> None:
    """An ISR changed: go on with phase B if it now holds the target replicas."""
    reassignment = c.context.full_assignment(partition)
    if partition in c.context.partitions_being_reassigned and await _is_complete(c, partition, reassignment):
        await _advance(c, partition, reassignment)


async def on_partition_reassignment(
    c: Controllership, partition: TopicPartition, reassignment: ReplicaAssignment
) -> None:
    await _update_current(c, partition, reassignment)
    if not await _is_complete(c, partition, reassignment):
        await _send_with_new_epoch(c, partition, reassignment)
        await c.replica_states.handle_state_changes(
            _replicas(partition, reassignment.adding_replicas), ReplicaState.NEW
        )
        return
    await c.replica_states.handle_state_changes(_replicas(partition, reassignment.adding_replicas), ReplicaState.ONLINE)
    completed = ReplicaAssignment(reassignment.target_replicas)
    c.context.update_assignment(partition, completed)
    await _move_leader_if_required(c, partition, completed)
    await _stop_and_delete(c, partition, reassignment.removing_replicas)
    await _write_assignment(c, partition, completed)
    await _remove_from_tree(c, lambda other, replicas: other == partition and replicas == completed.replicas)
    c.context.partitions_being_reassigned.discard(partition)
    await c.send_update_metadata_to_all((partition,))


async def _update_current(c: Controllership, partition: TopicPartition, reassignment: ReplicaAssignment) -> None:
    current = c.context.full_assignment(partition)
    if current != reassignment:
        await _write_assignment(c, partition, reassignment)
        c.context.update_assignment(partition, reassignment)
        unneeded = [replica for replica in current.replicas if replica not in reassignment.replicas]
        if unneeded:
            await _stop_and_delete(c, partition, unneeded)
    c.context.partitions_being_reassigned.add(partition)


async def _write_assignment(c: Controllership, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
    await c.client.change_topic_assignment(partition.topic, {partition.partition: assignment}, c.fence)


async def _is_complete(c: Controllership, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
    if not assignment.is_being_reassigned:
        return True
    state = (await c.state_nodes.read_partition_states([partition])).get(partition)
    return state is not None and set(assignment.target_replicas).issubset(state.leader_and_isr.isr)


async def _move_leader_if_required(c: Controllership, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
    leadership = c.context.leadership(partition)
    leader = -1 if leadership is None else leadership.leader_and_isr.leader
    if leader in assignment.replicas and c.context.is_replica_online(leader, partition):
        await _send_with_new_epoch(c, partition, assignment)
    else:
        await c.partition_states.handle_state_changes([partition], PartitionState.ONLINE, ElectionStrategy.REASSIGN)


async def _send_with_new_epoch(c: Controllership, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
    """Bump the leader epoch and tell the replicas, so that the leader takes the new assignment for real."""
    leadership = await _bump_leader_epoch(c, partition)
    c.batch.add_leader_and_isr(assignment.origin_replicas, partition, leadership, assignment, is_new=False)
    c.batch.add_leader_and_isr(assignment.adding_replicas, partition, leadership, assignment, is_new=True)
    c.send_batch()


async def _bump_leader_epoch(c: Controllership, partition: TopicPartition) -> LeaderIsrAndControllerEpoch:
    while True:
        state = (await c.state_nodes.read_partition_states([partition])).get(partition)
        if state is None:
            raise StateChangeFailed(f"Cannot update leader epoch for partition {partition}: it has no state")
        if state.controller_epoch > c.context.epoch:
            raise StateChangeFailed(f"A later controller, of epoch {state.controller_epoch}, wrote {partition}")
        updates = await c.state_nodes.update_partition_states({partition: state.leader_and_isr.with_new_epoch()})
        written = updates.finished.get(partition)
        if isinstance(written, StateChangeFailed):
            raise written
        if isinstance(written, LeaderAndIsr):
            leadership = LeaderIsrAndControllerEpoch(written, c.context.epoch)
            c.context.put_leadership(partition, leadership)
            return leadership


async def _stop_and_delete(c: Controllership, partition: TopicPartition, replicas: Iterable[int]) -> None:
    removed = _replicas(partition, replicas)
    for state in (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        await c.replica_states.handle_state_changes(removed, state)


async def _is_in_tree(c: Controllership) -> bool:
    """Whether there is a `/admin/reassign_partitions`; the next one will be heard of."""
    return await c.client.watch_existence(znodes.REASSIGN_PARTITIONS, c.watch(ZkPartitionReassignment(), CREATION))


async def _remove_from_tree(
    c: Controllership, should_remove: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> None:
    """Take partitions off `/admin/reassign_partitions`; the node goes when nothing is left."""
    if not await _is_in_tree(c):
        return
    targets = await c.client.partition_reassignment()
    remaining = {partition: to for partition, to in targets.items() if not should_remove(partition, to)}
    if remaining:
        await c.client.set_or_create_partition_reassignment(remaining, c.fence)
    else:
        await c.client.delete_node(znodes.REASSIGN_PARTITIONS, c.fence)
        # Watch for the next one.
        c.put(ZkPartitionReassignment())


def _replicas(partition: TopicPartition, replicas: Iterable[int]) -> list[PartitionAndReplica]:
    return [PartitionAndReplica(partition, replica) for replica in replicas]
