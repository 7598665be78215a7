"""The partition state machine: elects the leaders of partitions.

| state | meaning | valid previous states |
| --- | --- | --- |
| NEW | replicas are assigned, no leader was elected yet | NON_EXISTENT |
| ONLINE | a leader has been elected | NEW, ONLINE, OFFLINE |
| OFFLINE | the elected leader died | NEW, ONLINE, OFFLINE |
| NON_EXISTENT | never created, or created and then deleted | OFFLINE |

The effect of a transition:

* to NEW, OFFLINE, NON_EXISTENT: only the state changes.
* NEW to ONLINE: the first live replica becomes leader, and *all live* replicas are the ISR. The state node is created,
  and LeaderAndIsr with `is_new` goes to the ISR. A partition without a live replica stays NEW and is tried again when a
  broker starts.
* ONLINE or OFFLINE to ONLINE: the strategy elects a leader from the known state (`leader_election`), and the new state
  is written on condition that the node still has the version of the known one. If it has another version, or nobody
  in the known ISR is online, the node is read and a leader elected again. LeaderAndIsr goes to the strategy's
  recipients. A node that a later controller has written ends the attempt.

Kafka reads the node before each election, because brokers before Kafka 2.7 write the ISR themselves. The condition
finds these changes too, and spares a request for each partition when a broker dies.

A transition from any other state is refused and logged. All changes of one call are sent as one batch of requests.
Only this file changes a partition's state.

Kafka: PartitionStateMachine, ZkPartitionStateMachine, PartitionState.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.states.leader_election import ElectionResult, ElectionStrategy, elect
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.states.context import ControllerContext
    from odradek.controller.states.request_batch import ControlRequest, RequestBatch

logger = logging.getLogger("odradek.state.change")


class PartitionState(IntEnum):
    """The numbers are Kafka's."""

    NEW = 0
    ONLINE = 1
    OFFLINE = 2
    NON_EXISTENT = 3


VALID_PREVIOUS_PARTITION_STATES: Final = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}


class StateChangeFailed(Exception):
    """The state of a partition or replica could not be changed; it stays as it is."""


LeadershipOrError: TypeAlias = LeaderAndIsr | StateChangeFailed


class StateUpdates(NamedTuple):
    """The outcome of conditional writes. `finished`: the written state with its new partition epoch, or the error.
    `to_retry`: partitions whose state node has changed since it was read.

    Kafka: UpdateLeaderAndIsrResult.
    """

    finished: Mapping[TopicPartition, LeadershipOrError]
    to_retry: Sequence[TopicPartition]


class PartitionStateStore(Protocol):
    """The state nodes of partitions. Writes are fenced by the controller epoch and raise ControllerMoved if stale."""

    async def read_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderIsrAndControllerEpoch | None]:
        """The states, None for a partition without a state node."""

    async def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch]
    ) -> Mapping[TopicPartition, StateChangeFailed]:
        """Create the state nodes and their parents. Returns the errors of those that failed."""

    async def update_partition_states(
        self, leaderships: Mapping[TopicPartition, LeaderAndIsr], unchanged: Mapping[TopicPartition, LeaderAndIsr] = ...
    ) -> StateUpdates:
        """Write each state on condition that the node's version is still the state's partition epoch. Of the
        `unchanged` states only the condition is checked.
        """

    async def unclean_leader_election_topics(self, topics: Iterable[str]) -> set[str]:
        """The topics whose config allows unclean leader election."""


Send: TypeAlias = Callable[[list[tuple[int, "ControlRequest"]]], None]


class PartitionStateMachine:
    """See the module. `states` holds every partition of the controller's context."""

    def __init__(
        self,
        context: ControllerContext,
        store: PartitionStateStore,
        batch: RequestBatch,
        send: Send,
        controller_id: int,
        *,
        has_leader_recovery: bool = True,
    ) -> None:
        self._context = context
        self._store = store
        self._batch = batch
        self._send = send
        self._controller_id = controller_id
        self._has_leader_recovery = has_leader_recovery
        self.states: dict[TopicPartition, PartitionState] = {}
        self.unclean_leader_elections = 0

    def state(self, partition: TopicPartition) -> PartitionState:
        return self.states.get(partition, PartitionState.NON_EXISTENT)

    def remove_topic(self, topic: str) -> None:
        """Remove the states of a deleted topic, so that a new topic of the same name starts without them."""
        for partition in self._context.partitions_of(topic):
            self.states.pop(partition, None)

    async def startup(self) -> None:
        """Derive the states from the context at failover, and elect leaders for partitions without one.

        Kafka: PartitionStateMachine.initializePartitionState.
        """
        async for partition in in_turns(self._context.all_partitions):
            leadership = self._context.leadership(partition)
            if leadership is None:
                self.states[partition] = PartitionState.NEW
            elif self._context.is_replica_online(leadership.leader_and_isr.leader, partition):
                self.states[partition] = PartitionState.ONLINE
            else:
                self.states[partition] = PartitionState.OFFLINE
        await self.trigger_online_state_change()

    async def trigger_online_state_change(self, topic: str | None = None) -> dict[TopicPartition, LeadershipOrError]:
        """Try to elect a leader for every NEW and OFFLINE partition (of the topic) that is not being deleted.

        Kafka: PartitionStateMachine.triggerOnlinePartitionStateChange.
        """
        waiting = (PartitionState.NEW, PartitionState.OFFLINE)
        partitions = [
            partition
            for partition, state in self.states.items()
            if state in waiting
            and (topic is None or partition.topic == topic)
            and not self._context.is_topic_queued_for_deletion(partition.topic)
        ]
        return await self.handle_state_changes(partitions, PartitionState.ONLINE, ElectionStrategy.OFFLINE)

    async def handle_state_changes(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: ElectionStrategy | None = None,
    ) -> dict[TopicPartition, LeadershipOrError]:
        """Change the partitions' state and send the resulting requests. Returns the result of each election."""
        valid = [partition async for partition in in_turns(partitions) if self._is_valid_transition(partition, target)]
        results: dict[TopicPartition, LeadershipOrError] = {}
        if target is PartitionState.ONLINE:
            new = [partition for partition in valid if self.state(partition) is PartitionState.NEW]
            led_before = [partition for partition in valid if self.state(partition) is not PartitionState.NEW]
            if new:
                await self._initialize_leaders(new)
            if led_before:
                if strategy is None:
                    raise ValueError("an election strategy is required to bring a partition online")
                results = await self._elect_leaders(led_before, strategy)
        else:
            async for partition in in_turns(valid):
                self._put(partition, target)
        self._send(await self._batch.take_requests())
        return results

    def _is_valid_transition(self, partition: TopicPartition, target: PartitionState) -> bool:
        current = self.state(partition)
        if current in VALID_PREVIOUS_PARTITION_STATES[target]:
            return True
        legal = ",".join(state.name for state in sorted(VALID_PREVIOUS_PARTITION_STATES[target]))
        self._log_failure(
            partition, target, f"it should be in one of the states {legal} before moving there, not in {current.name}"
        )
        return False

    async def _initialize_leaders(self, partitions: Sequence[TopicPartition]) -> None:
        """Kafka: ZkPartitionStateMachine.initializeLeaderAndIsrForPartitions."""
        context = self._context
        initial: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        async for partition in in_turns(partitions):
            live = context.online_replicas(partition)
            if live:
                initial[partition] = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=live[0], isr=live), context.epoch)
            else:
                self._log_failure(
                    partition,
                    PartitionState.ONLINE,
                    f"none of the assigned replicas {list(context.replicas(partition))} is alive, "
                    f"live brokers are {sorted(context.live_broker_ids)}",
                )
        failed = await self._store.create_partition_states(initial)
        async for partition, leadership in in_turns(initial.items()):
            if partition in failed:
                self._log_failure(partition, PartitionState.ONLINE, str(failed[partition]))
                continue
            context.put_leadership(partition, leadership)
            self._batch.add_leader_and_isr(
                leadership.leader_and_isr.isr, partition, leadership, context.full_assignment(partition), is_new=True
            )
            self._put(partition, PartitionState.ONLINE)

    async def _elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy
    ) -> dict[TopicPartition, LeadershipOrError]:
        known = {
            partition: state
            async for partition in in_turns(partitions)
            if (state := self._context.leadership(partition)) is not None
            and any(self._context.is_replica_online(replica, partition) for replica in state.leader_and_isr.isr)
        }
        finished, _ = await self._try_elect_leaders(known, strategy)
        results: dict[TopicPartition, LeadershipOrError] = {
            partition: each for partition, each in finished.items() if isinstance(each, LeaderAndIsr)
        }
        remaining: Sequence[TopicPartition] = [partition for partition in partitions if partition not in results]
        while remaining:
            states = await self._store.read_partition_states(remaining)
            finished, remaining = await self._try_elect_leaders(states, strategy)
            results.update(finished)
        async for partition, result in in_turns(results.items()):
            if isinstance(result, StateChangeFailed):
                self._log_failure(partition, PartitionState.ONLINE, str(result))
            else:
                self._put(partition, PartitionState.ONLINE)
        return results

    async def _try_elect_leaders(
        self, states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch | None], strategy: ElectionStrategy
    ) -> tuple[dict[TopicPartition, LeadershipOrError], Sequence[TopicPartition]]:
        """One round of electing and writing. Returns the results, and the partitions to try again because their state
        node has another version. Kafka: ZkPartitionStateMachine.doElectLeaderForPartitions.
        """
        context = self._context
        results: dict[TopicPartition, LeadershipOrError] = {}
        current: dict[TopicPartition, LeaderAndIsr] = {}
        async for partition, state in in_turns(states.items()):
            if state is None:
                results[partition] = StateChangeFailed(
                    f"LeaderAndIsr information doesn't exist for partition {partition} "
                    f"in {self.state(partition).name} state"
                )
            elif state.controller_epoch > context.epoch:
                results[partition] = StateChangeFailed(
                    f"the state of {partition} was written by a later controller with epoch {state.controller_epoch}"
                )
            else:
                current[partition] = state.leader_and_isr
        elections = await self._hold_elections(current, strategy)
        elected: dict[TopicPartition, LeaderAndIsr] = {}
        async for partition, election in in_turns(elections.items()):
            if election.leader_and_isr is None:
                results[partition] = StateChangeFailed(
                    f"Failed to elect leader for partition {partition} under strategy {strategy.value}"
                )
            else:
                elected[partition] = election.leader_and_isr
        updates = await self._store.update_partition_states(elected)
        async for partition, written in in_turns(updates.finished.items()):
            results[partition] = written
            if isinstance(written, LeaderAndIsr):
                leadership = LeaderIsrAndControllerEpoch(written, context.epoch)
                context.put_leadership(partition, leadership)
                self.unclean_leader_elections += written.leader not in current[partition].isr
                self._batch.add_leader_and_isr(
                    elections[partition].recipients,
                    partition,
                    leadership,
                    context.full_assignment(partition),
                    is_new=False,
                )
        return results, updates.to_retry

    async def _hold_elections(
        self, current: Mapping[TopicPartition, LeaderAndIsr], strategy: ElectionStrategy
    ) -> dict[TopicPartition, ElectionResult]:
        context = self._context
        unclean_topics: set[str] = set()
        if strategy is ElectionStrategy.OFFLINE:
            # The config is needed, and read, only for partitions without a live replica in the ISR.
            topics = {
                partition.topic
                for partition, leadership in current.items()
                if not any(context.is_replica_online(replica, partition) for replica in leadership.isr)
            }
            unclean_topics = await self._store.unclean_leader_election_topics(topics) if topics else set()
        return {
            partition: elect(
                context,
                partition,
                leadership,
                strategy,
                unclean_allowed=partition.topic in unclean_topics,
                has_leader_recovery=self._has_leader_recovery,
            )
            async for partition, leadership in in_turns(current.items())
        }

    def _put(self, partition: TopicPartition, target: PartitionState) -> None:
        if target is PartitionState.ONLINE:
            logger.info(
                "[Controller id=%d epoch=%d] Changed partition %s from %s to %s with state %s",
                self._controller_id,
                self._context.epoch,
                partition,
                self.state(partition).name,
                target.name,
                self._context.leadership(partition),
            )
        else:
            logger.debug("Changed partition %s from %s to %s", partition, self.state(partition).name, target.name)
        self.states[partition] = target

    def _log_failure(self, partition: TopicPartition, target: PartitionState, reason: str) -> None:
        logger.error(
            "Controller %d epoch %d failed to change state for partition %s from %s to %s: %s",
            self._controller_id,
            self._context.epoch,
            partition,
            self.state(partition).name,
            target.name,
            reason,
        )
