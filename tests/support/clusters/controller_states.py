"""The state machines of the controller without a tree: a store of partition states in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from odradek.controller.model.broker_info import Broker, EndPoint, SecurityProtocol
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.context import ControllerContext
from odradek.controller.states.partition_states import PartitionStateMachine, StateChangeFailed, StateUpdates
from odradek.controller.states.replica_states import ReplicaStateMachine
from odradek.controller.states.request_batch import ControlRequest, RequestBatch
from odradek.protocol.topic_partition import TopicPartition

CONTROLLER_EPOCH = 7


class InMemoryStates:
    """State nodes as a dictionary. `races`: how many writes fail because of another writer."""

    def __init__(self) -> None:
        self.states: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self.unclean_topics: set[str] = set()
        self.races = 0
        self.reads = 0
        """How many nodes were read."""

    async def read_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch | None]:
        self.reads += len(partitions)
        return {partition: self.states.get(partition) for partition in partitions}

    async def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch]
    ) -> dict[TopicPartition, StateChangeFailed]:
        failed = {partition: StateChangeFailed("exists") for partition in states if partition in self.states}
        self.states.update({partition: state for partition, state in states.items() if partition not in failed})
        return failed

    async def update_partition_states(
        self,
        leaderships: Mapping[TopicPartition, LeaderAndIsr],
        unchanged: Mapping[TopicPartition, LeaderAndIsr] | None = None,
    ) -> StateUpdates:
        finished: dict[TopicPartition, LeaderAndIsr | StateChangeFailed] = {}
        to_retry: list[TopicPartition] = []
        for partition, leadership in [*(unchanged or {}).items(), *leaderships.items()]:
            if self.races:
                self.races -= 1
                current = self.states[partition].leader_and_isr
                self.states[partition] = LeaderIsrAndControllerEpoch(
                    current.with_partition_epoch(current.partition_epoch + 1), CONTROLLER_EPOCH
                )
            if partition not in self.states:
                finished[partition] = StateChangeFailed("NoNode")
            elif leadership.partition_epoch != self.states[partition].leader_and_isr.partition_epoch:
                to_retry.append(partition)
            elif partition in leaderships:
                written = leadership.with_partition_epoch(leadership.partition_epoch + 1)
                self.states[partition] = LeaderIsrAndControllerEpoch(written, CONTROLLER_EPOCH)
                finished[partition] = written
            else:
                finished[partition] = leadership
        return StateUpdates(finished, to_retry)

    async def unclean_leader_election_topics(self, topics: Iterable[str]) -> set[str]:
        return self.unclean_topics & set(topics)


class StateMachines:
    """Both machines over one context, and the requests they sent."""

    def __init__(self, live: Iterable[int]) -> None:
        self.context = ControllerContext()
        self.context.epoch = CONTROLLER_EPOCH
        self.context.set_live_brokers({broker(broker_id): 100 + broker_id for broker_id in live})
        self.store = InMemoryStates()
        self.sent: list[tuple[int, ControlRequest]] = []
        self.batch = RequestBatch(self.context, 0, "PLAINTEXT")
        parts = (self.context, self.store, self.batch, self.sent.extend, 0)
        self.partitions = PartitionStateMachine(*parts)
        self.replicas = ReplicaStateMachine(*parts)

    def assign(self, partition: TopicPartition, *replicas: int) -> None:
        self.context.all_topics.add(partition.topic)
        self.context.topic_ids[partition.topic] = partition.topic.encode().ljust(16, b"\0")
        self.context.update_assignment(partition, ReplicaAssignment(replicas))

    def lead(self, partition: TopicPartition, leader: int, isr: tuple[int, ...], leader_epoch: int = 0) -> None:
        """A partition that had a leader before."""
        leadership = LeaderAndIsr(leader=leader, isr=isr, leader_epoch=leader_epoch)
        self.store.states[partition] = LeaderIsrAndControllerEpoch(leadership, CONTROLLER_EPOCH)
        self.context.put_leadership(partition, self.store.states[partition])

    def kill(self, *broker_ids: int) -> None:
        self.context.remove_live_brokers(broker_ids)

    def leadership(self, partition: TopicPartition) -> tuple[int, tuple[int, ...], int]:
        """Leader, ISR and leader epoch in the store; the context must agree."""
        stored = self.store.states[partition].leader_and_isr
        known = self.context.leadership(partition)
        assert known is not None
        assert known.leader_and_isr == stored
        return stored.leader, stored.isr, stored.leader_epoch

    def take_sent(self) -> list[str]:
        """The requests, one readable line each."""
        lines = [
            f"{type(request).__name__.removesuffix('Request')} -> {to}: {shown(request)}" for to, request in self.sent
        ]
        self.sent.clear()
        return lines


def broker(broker_id: int) -> Broker:
    return Broker(broker_id, (EndPoint(f"host{broker_id}", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT),))


def shown(request: ControlRequest) -> str:
    """The partitions of a request, in one line."""
    parts: list[str] = []
    for topic in request.topic_states:
        for state in topic.partition_states:
            words = [f"{topic.topic_name}-{state.partition_index}"]
            if hasattr(state, "delete_partition"):
                words.append(f"epoch {state.leader_epoch}" + (" delete" if state.delete_partition else ""))
            else:
                isr = ",".join(map(str, state.isr))
                words.append(f"leader {state.leader} epoch {state.leader_epoch} isr {isr}")
                if getattr(state, "is_new", False):
                    words.append("new")
                if getattr(state, "leader_recovery_state", 0):
                    words.append("recovering")
                offline = getattr(state, "offline_replicas", [])
                if offline:
                    words.append("offline " + ",".join(map(str, offline)))
                adding = getattr(state, "adding_replicas", [])
                removing = getattr(state, "removing_replicas", [])
                if adding or removing:
                    replicas = ",".join(map(str, state.replicas))
                    words.append(f"replicas {replicas} adding {adding} removing {removing}")
            parts.append(" ".join(words))
    return "; ".join(parts) or "brokers only"
