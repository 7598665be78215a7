"""The replica state machine: starts, stops and deletes replicas.

| state | meaning | valid previous states |
| --- | --- | --- |
| NEW | created by a new topic or a reassignment; can only become a follower | NON_EXISTENT |
| ONLINE | started and part of the assignment; can lead or follow | NEW, ONLINE, OFFLINE, DELETION_INELIGIBLE |
| OFFLINE | its broker is down, or it is being stopped | NEW, ONLINE, OFFLINE, DELETION_INELIGIBLE |
| DELETION_STARTED | StopReplica with delete=true was sent | OFFLINE |
| DELETION_SUCCESSFUL | the broker answered without an error | DELETION_STARTED |
| DELETION_INELIGIBLE | deletion failed, or the broker is down | OFFLINE, DELETION_STARTED |
| NON_EXISTENT | deleted | DELETION_SUCCESSFUL |

The effect of a transition:

* to NEW: if the partition has a leader, LeaderAndIsr with `is_new` to the replica. The leader cannot become NEW.
* to ONLINE: from NEW, the replica is added to the assignment if missing; from other states, LeaderAndIsr with the
  current leadership.
* to OFFLINE: StopReplica without deletion to the replica. If it is in the ISR, it is removed from it with a new leader
  epoch (if it was the leader, the partition has no leader now). **The last member of an ISR stays**, because only it
  has every acknowledged record. The other replicas get LeaderAndIsr unless the topic is being deleted. Without
  leadership only UpdateMetadata is sent.
* to DELETION_STARTED: StopReplica with deletion.
* to DELETION_SUCCESSFUL, DELETION_INELIGIBLE: only the state changes.
* to NON_EXISTENT: the replica is removed from the assignment in the context.

A transition from any other state is refused and logged. All changes of one call are sent as one batch of requests.
Only this file changes a replica's state.

Kafka: ReplicaStateMachine, ZkReplicaStateMachine, ReplicaState.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import NO_LEADER, LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.partition_states import PartitionStateStore, Send, StateChangeFailed
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.states.context import ControllerContext
    from odradek.controller.states.request_batch import RequestBatch

logger = logging.getLogger("odradek.state.change")


class ReplicaState(IntEnum):
    """The numbers are Kafka's."""

    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7


_HOSTED: Final = frozenset(
    {ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE}
)

VALID_PREVIOUS_REPLICA_STATES: Final = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: _HOSTED,
    ReplicaState.OFFLINE: _HOSTED,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}


def without_replica(leadership: LeaderAndIsr, replica: int) -> LeaderAndIsr | None:
    """The leadership after a replica went offline; None if it was not in the ISR, so that nothing changes."""
    if replica not in leadership.isr:
        return None
    leader = NO_LEADER if leadership.leader == replica else leadership.leader
    isr = leadership.isr if len(leadership.isr) == 1 else tuple(r for r in leadership.isr if r != replica)
    return leadership.with_new_leader_and_isr(leader, isr)


class ReplicaStateMachine:
    """See the module. `states` holds every replica of the controller's context."""

    def __init__(
        self,
        context: ControllerContext,
        store: PartitionStateStore,
        batch: RequestBatch,
        send: Send,
        controller_id: int,
    ) -> None:
        self._context = context
        self._store = store
        self._batch = batch
        self._send = send
        self._controller_id = controller_id
        self.states: dict[PartitionAndReplica, ReplicaState] = {}

    def state(self, replica: PartitionAndReplica) -> ReplicaState:
        return self.states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in_state(self, topic: str, state: ReplicaState) -> list[PartitionAndReplica]:
        return [replica for replica in self._context.replicas_of_topic(topic) if self.state(replica) is state]

    def are_all_replicas_in_state(self, topic: str, state: ReplicaState) -> bool:
        return all(self.state(replica) is state for replica in self._context.replicas_of_topic(topic))

    def is_any_replica_in_state(self, topic: str, state: ReplicaState) -> bool:
        return any(self.state(replica) is state for replica in self._context.replicas_of_topic(topic))

    def remove_topic(self, topic: str) -> None:
        """Remove the states of a deleted topic, so that a new topic of the same name starts without them."""
        for replica in self._context.replicas_of_topic(topic):
            self.states.pop(replica, None)

    async def startup(self) -> None:
        """Derive the states from the context at failover, and send every replica its state.

        Kafka: ReplicaStateMachine.initializeReplicaState.
        """
        online: list[PartitionAndReplica] = []
        offline: list[PartitionAndReplica] = []
        async for replica in in_turns(self._context.replicas_of_partitions(self._context.all_partitions)):
            if self._context.is_replica_online(replica.replica, replica.topic_partition):
                self.states[replica] = ReplicaState.ONLINE
                online.append(replica)
            else:
                # A replica that died during the failover must block the deletion of its topic.
                self.states[replica] = ReplicaState.DELETION_INELIGIBLE
                offline.append(replica)
        await self.handle_state_changes(online, ReplicaState.ONLINE)
        await self.handle_state_changes(offline, ReplicaState.OFFLINE)

    async def handle_state_changes(self, replicas: Iterable[PartitionAndReplica], target: ReplicaState) -> None:
        """Change the replicas' state and send the resulting requests."""
        by_broker: dict[int, list[PartitionAndReplica]] = {}
        async for replica in in_turns(replicas):
            if self._is_valid_transition(replica, target):
                by_broker.setdefault(replica.replica, []).append(replica)
        for broker_id, valid in by_broker.items():
            match target:
                case ReplicaState.NEW:
                    await self._start_new(valid)
                case ReplicaState.ONLINE:
                    await self._bring_online(valid)
                case ReplicaState.OFFLINE:
                    await self._take_offline(broker_id, valid)
                case ReplicaState.DELETION_STARTED:
                    async for replica in in_turns(valid):
                        self._put(replica, target)
                        self._batch.add_stop_replica((broker_id,), replica.topic_partition, delete=True)
                case ReplicaState.DELETION_SUCCESSFUL | ReplicaState.DELETION_INELIGIBLE:
                    async for replica in in_turns(valid):
                        self._put(replica, target)
                case ReplicaState.NON_EXISTENT:
                    await self._remove(valid)
        self._send(await self._batch.take_requests())

    def _is_valid_transition(self, replica: PartitionAndReplica, target: ReplicaState) -> bool:
        current = self.state(replica)
        if current in VALID_PREVIOUS_REPLICA_STATES[target]:
            return True
        legal = ",".join(state.name for state in sorted(VALID_PREVIOUS_REPLICA_STATES[target]))
        self._log_failure(
            replica, target, f"it should be in one of the states {legal} before moving there, not in {current.name}"
        )
        return False

    async def _start_new(self, replicas: Sequence[PartitionAndReplica]) -> None:
        async for replica in in_turns(replicas):
            partition = replica.topic_partition
            leadership = self._context.leadership(partition)
            if leadership is not None:
                if leadership.leader_and_isr.leader == replica.replica:
                    self._log_failure(replica, ReplicaState.NEW, "it is the leader of the partition")
                    continue
                assignment = self._context.full_assignment(partition)
                self._batch.add_leader_and_isr((replica.replica,), partition, leadership, assignment, is_new=True)
            self._put(replica, ReplicaState.NEW)

    async def _bring_online(self, replicas: Sequence[PartitionAndReplica]) -> None:
        async for replica in in_turns(replicas):
            partition = replica.topic_partition
            assignment = self._context.full_assignment(partition)
            if self.state(replica) is ReplicaState.NEW:
                if replica.replica not in assignment.replicas:
                    logger.error("Adding replica %s that is not part of the assignment %s", replica, assignment)
                    self._context.update_assignment(partition, assignment.with_replica(replica.replica))
            else:
                leadership = self._context.leadership(partition)
                if leadership is not None:
                    self._batch.add_leader_and_isr((replica.replica,), partition, leadership, assignment, is_new=False)
            self._put(replica, ReplicaState.ONLINE)

    async def _take_offline(self, broker_id: int, replicas: Sequence[PartitionAndReplica]) -> None:
        context = self._context
        with_leadership: list[TopicPartition] = []
        async for replica in in_turns(replicas):
            partition = replica.topic_partition
            self._batch.add_stop_replica((broker_id,), partition, delete=False)
            if context.leadership(partition) is not None:
                with_leadership.append(partition)
            else:
                self._batch.add_update_metadata(context.live_or_shutting_down_broker_ids, (partition,))
                self._put(replica, ReplicaState.OFFLINE)
        left = await self._remove_from_isr(broker_id, with_leadership)
        async for partition, leadership in in_turns(left.items()):
            if not context.is_topic_queued_for_deletion(partition.topic):
                others = [replica for replica in context.replicas(partition) if replica != broker_id]
                self._batch.add_leader_and_isr(
                    others, partition, leadership, context.full_assignment(partition), is_new=False
                )
            self._put(PartitionAndReplica(partition, broker_id), ReplicaState.OFFLINE)

    async def _remove_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """Remove a broker from the ISRs. Returns the leadership of each partition whose node has it, changed or not.

        The known states are tried first, as in an election (`partition_states`).

        Kafka: ZkReplicaStateMachine.removeReplicasFromIsr.
        """
        known = {partition: self._context.leadership(partition) async for partition in in_turns(partitions)}
        results, _, _ = await self._try_remove_from_isr(broker_id, known)
        remaining: Sequence[TopicPartition] = [partition for partition in partitions if partition not in results]
        while remaining:
            states = await self._store.read_partition_states(remaining)
            finished, failed, remaining = await self._try_remove_from_isr(broker_id, states)
            results.update(finished)
            for partition, reason in failed.items():
                replica = PartitionAndReplica(partition, broker_id)
                self._log_failure(replica, ReplicaState.OFFLINE, str(reason))
        return results

    async def _try_remove_from_isr(
        self, broker_id: int, states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch | None]
    ) -> tuple[
        dict[TopicPartition, LeaderIsrAndControllerEpoch],
        dict[TopicPartition, StateChangeFailed],
        Sequence[TopicPartition],
    ]:
        """One round. Returns the leaderships, the failures, and the partitions to try again because their state node
        has another version. Kafka: ZkReplicaStateMachine.doRemoveReplicasFromIsr.
        """
        context = self._context
        finished: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        failed: dict[TopicPartition, StateChangeFailed] = {}
        unchanged: dict[TopicPartition, LeaderAndIsr] = {}
        changed: dict[TopicPartition, LeaderAndIsr] = {}
        async for partition, state in in_turns(states.items()):
            if state is None:
                if not context.is_topic_queued_for_deletion(partition.topic):
                    failed[partition] = StateChangeFailed("it has no state node")
            elif state.controller_epoch > context.epoch:
                failed[partition] = StateChangeFailed(
                    f"its state was written by a later controller with epoch {state.controller_epoch}"
                )
            else:
                adjusted = without_replica(state.leader_and_isr, broker_id)
                if adjusted is None:
                    unchanged[partition] = state.leader_and_isr
                else:
                    changed[partition] = adjusted
        updates = await self._store.update_partition_states(changed, unchanged)
        async for partition, written in in_turns(updates.finished.items()):
            if isinstance(written, StateChangeFailed):
                failed[partition] = written
            else:
                finished[partition] = LeaderIsrAndControllerEpoch(written, context.epoch)
                context.put_leadership(partition, finished[partition])
        return finished, failed, updates.to_retry

    async def _remove(self, replicas: Sequence[PartitionAndReplica]) -> None:
        async for replica in in_turns(replicas):
            partition = replica.topic_partition
            assignment = self._context.full_assignment(partition).remove_replica(replica.replica)
            self._context.update_assignment(partition, assignment)
            logger.debug("Changed replica %s to NON_EXISTENT", replica)
            self.states.pop(replica, None)

    def _put(self, replica: PartitionAndReplica, target: ReplicaState) -> None:
        logger.debug("Changed replica %s from %s to %s", replica, self.state(replica).name, target.name)
        self.states[replica] = target

    def _log_failure(self, replica: PartitionAndReplica, target: ReplicaState, reason: str) -> None:
        logger.error(
            "Controller %d epoch %d initiated state change of replica %s from %s to %s failed: %s",
            self._controller_id,
            self._context.epoch,
            replica,
            self.state(replica).name,
            target.name,
            reason,
        )
