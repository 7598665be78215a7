"""Partition reassignment (KIP-455).

ORS are the original replicas, TRS the target replicas, and ISR is the one in the tree:

* **first**: the assignment is written to the topic node and to the context *before* anything else, so that a new
  controller can continue; replicas that only a replaced reassignment was adding are stopped and deleted.
* **phase A**, while TRS ⊄ ISR: the leader epoch is bumped, and all replicas get LeaderAndIsr with the adding and
  removing replicas (`is_new` for those being added: they may select a log directory); the adding replicas become NEW
  and start to fetch.
* **phase B**, when TRS ⊆ ISR: adding replicas go ONLINE; TRS becomes the assignment in the context; a new leader is
  elected if the current one is not in TRS or not alive, else only its epoch is bumped; the removed replicas go OFFLINE
  (out of the ISR) and are deleted, without waiting for their responses; the topic node gets TRS, last, because only it
  holds ORS; all brokers get UpdateMetadata.

Phase B is tried when an ISR grows (AlterPartition), when a broker starts, and at failover. The deletion of the topic
ends its reassignments. (Kafka intends to delay the deletion, but marks topics as ineligible before they are queued,
without effect; only its next controller waits for reassignments, which may never end.)

Kafka: KafkaController.onPartitionReassignment, KafkaController.processApiPartitionReassignment,
KafkaController.processZkPartitionReassignment, KafkaController.maybeCompleteReassignment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING, Final

from odradek.controller.controllership import CREATION
from odradek.controller.events import ZkPartitionReassignment
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.leader_election import ElectionStrategy
from odradek.controller.states.partition_states import PartitionState, StateChangeFailed
from odradek.controller.states.replica_states import ReplicaState
from odradek.controller.tree.metadata_tree import SessionExpired, StorageFull, TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership
    from odradek.protocol.topic_partition import TopicPartition

logger = logging.getLogger("odradek.controller")


NO_REASSIGNMENT: Final = KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
NO_REPLICAS: Final = KafkaError(
    ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Empty replica list specified in partition reassignment."
)
NO_PARTITION: Final = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
"""Results, not raised: a request may name 200,000 partitions, and an error of its own for each has 300 bytes."""


async def process_api_partition_reassignment(
    controllership: Controllership, targets: Iterable[tuple[TopicPartition, tuple[int, ...] | None]]
) -> list[KafkaError | None]:
    """Start, replace or (with None) cancel reassignments, each partition at most once. They replace those in
    `/admin/reassign_partitions`.

    Returns None or the error of each, in their order.
    """
    is_any_in_zk = await _has_zk_reassignment(controllership)
    in_zk = await controllership.client.partition_reassignment() if is_any_in_zk else {}
    superseded: set[TopicPartition] = set()
    results: list[KafkaError | None] = []
    accepted: dict[TopicPartition, ReplicaAssignment] = {}
    places: list[int] = []
    async for partition, target in in_turns(targets):
        error = None if target is None else _validate_replicas(controllership, partition, target)
        if error is None:
            reassignment = _maybe_build_reassignment(controllership, partition, target)
            if reassignment is None:
                error = NO_REASSIGNMENT
            elif controllership.context.replicas(partition):
                accepted[partition] = reassignment
                places.append(len(results))
            else:
                error = NO_PARTITION
            if reassignment is not None and partition in in_zk:
                superseded.add(partition)
        results.append(error)
    if is_any_in_zk:
        await _maybe_remove_from_zk_reassignment(controllership, lambda partition, _: partition in superseded)
    triggered = await _maybe_trigger_reassignments(controllership, accepted)
    for place, outcome in zip(places, triggered.values(), strict=True):
        results[place] = outcome
    return results


def _validate_replicas(
    controllership: Controllership, partition: TopicPartition, target: tuple[int, ...]
) -> KafkaError | None:
    def invalid(message: str) -> KafkaError:
        # The message repeats the client's list; a string in a response has a limit.
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message[:MAX_STRING_BYTES])

    if not target:
        return NO_REPLICAS
    in_order = sorted(target)  # a set of 260,000 ids, which a request of 1 MB may name, has 8 MB
    if any(map(eq, in_order, islice(in_order, 1, None))):
        return invalid(f"Duplicate replica ids in partition reassignment replica list: {_array_buffer(target)}")
    if min(target) < 0:
        return invalid(f"Invalid broker id in replica list: {_array_buffer(target)}")
    adding = controllership.context.full_assignment(partition).added_by(target)
    live = controllership.context.live_broker_ids
    if not live.issuperset(adding):
        return invalid(
            f"Replica assignment has brokers that are not alive. Replica list: {_array_buffer(adding)}, "
            f"live broker list: Set({', '.join(map(str, sorted(live)))})"
        )
    return None


def _array_buffer(broker_ids: Iterable[int]) -> str:
    """As Scala shows a list, and so Apache Kafka's messages. No message has room for more than the first ids."""
    return f"ArrayBuffer({', '.join(map(str, islice(broker_ids, MAX_STRING_BYTES)))})"


def _maybe_build_reassignment(
    controllership: Controllership, partition: TopicPartition, target: tuple[int, ...] | None
) -> ReplicaAssignment | None:
    """The assignment during the reassignment; None if there is no reassignment to cancel."""
    current = controllership.context.full_assignment(partition)
    if target is None:
        return current.reassign_to(current.origin_replicas) if current.is_being_reassigned else None
    return current.reassign_to(target)


async def ongoing_reassignments(
    controllership: Controllership, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, ReplicaAssignment]:
    """The reassignments of these partitions, for None of all. Kafka: processListPartitionReassignments."""
    found = {}
    async for partition in in_turns(
        tuple(controllership.context.partitions_being_reassigned) if partitions is None else partitions
    ):
        assignment = controllership.context.full_assignment(partition)
        if assignment.is_being_reassigned:
            found[partition] = assignment
    return found


async def process_zk_partition_reassignment(controllership: Controllership) -> set[TopicPartition]:
    """Start the reassignments in `/admin/reassign_partitions`. Returns the partitions that were started.

    A node without any is removed: the next one would not be noticed while it is there.
    """
    if not await _has_zk_reassignment(controllership):
        return set()
    targets = await controllership.client.partition_reassignment()
    accepted = {
        partition: controllership.context.full_assignment(partition).reassign_to(to)
        for partition, to in targets.items()
    }
    results = await _maybe_trigger_reassignments(controllership, accepted)
    failed = {partition: error for partition, error in results.items() if error is not None}
    if failed:
        logger.warning("Failed reassignment through zk with the following errors: %s", failed)
    if failed or not targets:
        await _maybe_remove_from_zk_reassignment(controllership, lambda partition, _: partition in failed)
    return results.keys() - failed.keys()


async def _maybe_trigger_reassignments(
    controllership: Controllership, reassignments: Mapping[TopicPartition, ReplicaAssignment]
) -> dict[TopicPartition, KafkaError | None]:
    results: dict[TopicPartition, KafkaError | None] = {}
    async for partition, reassignment in in_turns(reassignments.items()):
        if controllership.deletions.is_queued(partition.topic) or not controllership.context.replicas(partition):
            results[partition] = NO_PARTITION
            continue
        results[partition] = await _advance(controllership, partition, reassignment)
    return results


async def _advance(
    controllership: Controllership, partition: TopicPartition, reassignment: ReplicaAssignment
) -> KafkaError | None:
    """Take the next step of a reassignment. An error does not stop other reassignments or the failover.

    Without space the controller resigns, and takes the step after its next election.
    """
    try:
        await on_partition_reassignment(controllership, partition, reassignment)
    except (SessionExpired, StorageFull):
        raise
    except (StateChangeFailed, TreeError, BadZnode) as error:
        logger.error("Error completing reassignment of partition %s: %r", partition, error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


async def maybe_resume_reassignments(
    controllership: Controllership, should_resume: Callable[[TopicPartition, ReplicaAssignment], bool]
) -> None:
    """Take the next step of the ongoing reassignments for which `should_resume` is true."""
    for partition in sorted(controllership.context.partitions_being_reassigned):
        assignment = controllership.context.full_assignment(partition)
        if should_resume(partition, assignment):
            await _advance(controllership, partition, assignment)


async def resume_after_failover(controllership: Controllership) -> None:
    started = await process_zk_partition_reassignment(controllership)
    await maybe_resume_reassignments(controllership, lambda partition, _: partition not in started)


async def maybe_complete_reassignment(controllership: Controllership, partition: TopicPartition) -> None:
    """An ISR changed: continue with phase B if it contains the target replicas."""
    reassignment = controllership.context.full_assignment(partition)
    if partition in controllership.context.partitions_being_reassigned and await _is_reassignment_complete(
        controllership, partition, reassignment
    ):
        await _advance(controllership, partition, reassignment)


async def on_partition_reassignment(
    controllership: Controllership, partition: TopicPartition, reassignment: ReplicaAssignment
) -> None:
    await _update_current_reassignment(controllership, partition, reassignment)
    if not await _is_reassignment_complete(controllership, partition, reassignment):
        await _update_leader_epoch_and_send_request(controllership, partition, reassignment)
        await controllership.replica_states.handle_state_changes(
            _replicas(partition, reassignment.adding_replicas), ReplicaState.NEW
        )
        return
    await controllership.replica_states.handle_state_changes(
        _replicas(partition, reassignment.adding_replicas), ReplicaState.ONLINE
    )
    completed = ReplicaAssignment(reassignment.target_replicas)
    controllership.context.update_assignment(partition, completed)
    await _move_leader_if_required(controllership, partition, completed)
    await _stop_removed_replicas(controllership, partition, reassignment.removing_replicas)
    await _update_replica_assignment(controllership, partition, completed)
    await _maybe_remove_from_zk_reassignment(
        controllership, lambda other, replicas: other == partition and replicas == completed.replicas
    )
    controllership.context.partitions_being_reassigned.discard(partition)
    await controllership.send_update_metadata_to_all((partition,))


async def _update_current_reassignment(
    controllership: Controllership, partition: TopicPartition, reassignment: ReplicaAssignment
) -> None:
    current = controllership.context.full_assignment(partition)
    if current != reassignment:
        await _update_replica_assignment(controllership, partition, reassignment)
        controllership.context.update_assignment(partition, reassignment)
        unneeded = [replica for replica in current.replicas if replica not in reassignment.replicas]
        if unneeded:
            await _stop_removed_replicas(controllership, partition, unneeded)
    controllership.context.partitions_being_reassigned.add(partition)


async def _update_replica_assignment(
    controllership: Controllership, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    await controllership.client.change_topic_assignment(
        partition.topic,
        {partition.partition: assignment},
        controllership.fence,
        controllership.context.topic_ids.get(partition.topic),
        controllership.context.assignments_of(partition.topic),
    )


async def _is_reassignment_complete(
    controllership: Controllership, partition: TopicPartition, assignment: ReplicaAssignment
) -> bool:
    if not assignment.is_being_reassigned:
        return True
    state = (await controllership.state_nodes.read_partition_states([partition])).get(partition)
    return state is not None and set(assignment.target_replicas).issubset(state.leader_and_isr.isr)


async def _move_leader_if_required(
    controllership: Controllership, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    leadership = controllership.context.leadership(partition)
    leader = -1 if leadership is None else leadership.leader_and_isr.leader
    if leader in assignment.replicas and controllership.context.is_replica_online(leader, partition):
        await _update_leader_epoch_and_send_request(controllership, partition, assignment)
    else:
        await controllership.partition_states.handle_state_changes(
            [partition], PartitionState.ONLINE, ElectionStrategy.REASSIGN
        )


async def _update_leader_epoch_and_send_request(
    controllership: Controllership, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    """Bump the leader epoch and send LeaderAndIsr, so that the leader applies the new assignment."""
    leadership = await _update_leader_epoch(controllership, partition)
    controllership.batch.add_leader_and_isr(assignment.origin_replicas, partition, leadership, assignment, is_new=False)
    controllership.batch.add_leader_and_isr(assignment.adding_replicas, partition, leadership, assignment, is_new=True)
    await controllership.send_batch()


async def _update_leader_epoch(
    controllership: Controllership, partition: TopicPartition
) -> LeaderIsrAndControllerEpoch:
    while True:
        state = (await controllership.state_nodes.read_partition_states([partition])).get(partition)
        if state is None:
            raise StateChangeFailed(f"Cannot update leader epoch for partition {partition}: it has no state node")
        if state.controller_epoch > controllership.context.epoch:
            raise StateChangeFailed(f"A later controller, of epoch {state.controller_epoch}, wrote {partition}")
        updates = await controllership.state_nodes.update_partition_states(
            {partition: state.leader_and_isr.with_new_epoch()}
        )
        written = updates.finished.get(partition)
        if isinstance(written, StateChangeFailed):
            raise written
        if isinstance(written, LeaderAndIsr):
            leadership = LeaderIsrAndControllerEpoch(written, controllership.context.epoch)
            controllership.context.put_leadership(partition, leadership)
            return leadership


async def _stop_removed_replicas(
    controllership: Controllership, partition: TopicPartition, replicas: Iterable[int]
) -> None:
    removed = _replicas(partition, replicas)
    for state in (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        await controllership.replica_states.handle_state_changes(removed, state)


async def _has_zk_reassignment(controllership: Controllership) -> bool:
    """Whether `/admin/reassign_partitions` exists; also watches its creation."""
    return await controllership.client.watch_existence(
        znodes.REASSIGN_PARTITIONS, controllership.watch(ZkPartitionReassignment(), CREATION)
    )


async def _maybe_remove_from_zk_reassignment(
    controllership: Controllership, should_remove: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> None:
    """Remove partitions from `/admin/reassign_partitions`; the node is deleted when no partition is left."""
    if not await _has_zk_reassignment(controllership):
        return
    targets = await controllership.client.partition_reassignment()
    remaining = {partition: to for partition, to in targets.items() if not should_remove(partition, to)}
    if remaining:
        await controllership.client.set_or_create_partition_reassignment(remaining, controllership.fence)
    else:
        await controllership.client.delete_node(znodes.REASSIGN_PARTITIONS, controllership.fence)
        # This event sets the watch for the next node.
        controllership.put(ZkPartitionReassignment())


def _replicas(partition: TopicPartition, replicas: Iterable[int]) -> list[PartitionAndReplica]:
    return [PartitionAndReplica(partition, replica) for replica in replicas]
