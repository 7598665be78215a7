"""The partition state machine: every partition of the cluster has a leader, or is on its way to one.

| state | meaning | may come from |
| --- | --- | --- |
| NEW | replicas are assigned, no leader was elected yet | NON_EXISTENT |
| ONLINE | a leader has been elected | NEW, ONLINE, OFFLINE |
| OFFLINE | the elected leader died | NEW, ONLINE, OFFLINE |
| NON_EXISTENT | never created, or created and then deleted | OFFLINE |

What moving to a state does:

* NEW, OFFLINE, NON_EXISTENT: nothing but the change of state.
* NEW to ONLINE: the first live replica leads and *all live* replicas are the ISR. The state node is created, and
  LeaderAndIsr with `is_new` goes to the ISR. A partition none of whose replicas is alive stays NEW and is tried again
  when a broker starts.
* ONLINE or OFFLINE to ONLINE: the partition's state is read, a leader is elected by the strategy given
  (`leader_election`), and the new state is written on condition that nobody wrote in between. If the leader did (it
  changed its ISR), the partition is read and elected again. LeaderAndIsr goes to the strategy's recipients. A state
  that a later controller wrote ends the attempt.

A transition from any other state is refused and logged. All changes of one call leave as one batch of requests.
Everything that changes a partition's state is in this file.

Kafka: kafka.controller.PartitionStateMachine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

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
    """A partition or replica could not be moved; it stays where it is."""


LeadershipOrError: TypeAlias = LeaderAndIsr | StateChangeFailed


@dataclass(frozen=True, slots=True)
class StateUpdates:
    """The outcome of conditional writes: what was written, under its new partition epoch, or failed; and what lost."""

    finished: Mapping[TopicPartition, LeadershipOrError]
    to_retry: Sequence[TopicPartition]


class PartitionStateStore(Protocol):
    """The partitions' state nodes. Writes are fenced by the controller epoch; a stale one raises ControllerMoved."""

    async def read_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderIsrAndControllerEpoch | None]:
        """The states, None for a partition that has none."""

    async def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch]
    ) -> Mapping[TopicPartition, StateChangeFailed]:
        """Create the state nodes and their parents; the partitions that failed."""

    async def update_partition_states(self, leaderships: Mapping[TopicPartition, LeaderAndIsr]) -> StateUpdates:
        """Write each state on condition that the node still has the partition epoch given."""

    async def unclean_leader_election_topics(self, topics: Iterable[str]) -> set[str]:
        """Those of the topics whose config allows unclean leader election."""


Send: TypeAlias = Callable[[list[tuple[int, "ControlRequest"]]], None]


class PartitionStateMachine:
    """See the module. `states` holds every partition the controller knows."""

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

    def state(self, partition: TopicPartition) -> PartitionState:
        return self.states.get(partition, PartitionState.NON_EXISTENT)

    def remove_topic(self, topic: str) -> None:
        """Forget the partitions of a topic that is gone, so that a namesake starts afresh."""
        for partition in self._context.partitions_of(topic):
            self.states.pop(partition, None)

    async def startup(self) -> None:
        """Take the states from the context at failover, and elect leaders for what has none."""
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
        """Try to elect a leader for every NEW and OFFLINE partition (of the topic) that is not being deleted."""
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
        """Move partitions to a state and send what follows. Returns the result of every election that was held."""
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
        self._send(self._batch.take_requests())
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
        results: dict[TopicPartition, LeadershipOrError] = {}
        remaining = partitions
        while remaining:
            finished, remaining = await self._try_elect_leaders(remaining, strategy)
            results.update(finished)
        async for partition, result in in_turns(results.items()):
            if isinstance(result, StateChangeFailed):
                self._log_failure(partition, PartitionState.ONLINE, str(result))
            else:
                self._put(partition, PartitionState.ONLINE)
        return results

    async def _try_elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy
    ) -> tuple[dict[TopicPartition, LeadershipOrError], Sequence[TopicPartition]]:
        """One round of reading, electing and writing; the partitions whose state changed meanwhile need another."""
        context = self._context
        results: dict[TopicPartition, LeadershipOrError] = {}
        current: dict[TopicPartition, LeaderAndIsr] = {}
        states = await self._store.read_partition_states(partitions)
        async for partition, state in in_turns(states.items()):
            if state is None:
                results[partition] = StateChangeFailed(
                    f"LeaderAndIsr information doesn't exist for partition {partition} "
                    f"in {self.state(partition).name} state"
                )
            elif state.controller_epoch > context.epoch:
                results[partition] = StateChangeFailed(
                    f"the state of {partition} was written by a later controller, of epoch {state.controller_epoch}"
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
            # The config is read only where it matters: where nobody in sync is left.
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
