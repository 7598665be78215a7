"""Checks of what must hold after each step of a simulated cluster.

The oracle looks into the brokers after each of their turns and remembers what has been committed: the batches below a
high watermark. They must never be lost: a replica whose high watermark has passed an offset holds the very batch there,
a new leader holds them all, a reader sees nothing else, and every acknowledged batch is among them. Each member of the
ISR in the tree holds them all, so that it may be elected at any time, and there are `min.insync.replicas` members when
a batch is committed. The epochs of a partition only grow, and only the current controller writes its state.

A loss of power loses what was not synced. Kafka syncs nothing before it acknowledges: it relies on the other replicas.
So a replica that has lost its power is *doubtful* for as long as it stays in the ISR that it was in: nothing is checked
of it, and if it is elected because no other is left, all may be lost and the run is over (`NotJudged`). The same holds
for an ISR that a leader has just proposed with such a replica: the controller only looks at the broker's session, as
Apache's does, and writes the proposal if nothing was written since. The rest must hold: the controller takes a broker
that was gone out of every ISR in which it is not alone, it comes back in sync only with everything that was committed,
and meanwhile the others have all of it. A replica that a reassignment takes away is doubtful, too: at the end the
leader hears of the new replicas first and no longer waits for the others, while the ISR in the tree still has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from odradek.broker.partition.isr import PendingPartitionChange
from odradek.controller.tree.metadata_tree import Exists, GetData, NoNode
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.records.batch import batches
from odradek.protocol.topic_partition import TopicPartition
from tests.support.simulation.committed import Batch, Committed, Violation, read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from odradek.broker.partition.partition import Partition
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.controller.model.leader_and_isr import LeaderIsrAndControllerEpoch
    from odradek.controller.model.reassignment import ReplicaAssignment
    from odradek.controller.tree.metadata_tree import DataAndStat
    from odradek.storage.log.unified_log import UnifiedLog
    from tests.support.simulation.broker import Life, SimulatedBroker
    from tests.support.simulation.environment.tree_server import TreeServer

MIN_ISR: Final = 2


class NotJudged(Exception):
    """The run cannot be judged from here on."""


class Seen(NamedTuple):
    """A replica at the last look of the oracle."""

    leader_epoch: int
    is_leader: bool
    high_watermark: int
    log: UnifiedLog


class Topic(NamedTuple):
    """A partition of one topic: another one of the same name has another id."""

    topic_partition: TopicPartition
    topic_id: bytes | None


class Oracle:
    """See the module. `committed`: of the partitions of the moment."""

    def __init__(self, tree: TreeServer, note: Callable[[str], None]) -> None:
        self.committed: dict[TopicPartition, Committed] = {}
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {}
        self._all_committed: dict[Topic, Committed] = {}
        """With those of topics that were deleted."""
        self._tree = tree
        self._note = note
        self._seen: dict[tuple[Life, TopicPartition], Seen] = {}
        self._logs: dict[tuple[int, TopicPartition], UnifiedLog] = {}
        """The last log that was seen of each broker, also of those that are down."""
        self._leaders: dict[tuple[Topic, int], str] = {}
        self._controllers: dict[int, str] = {}
        self._epochs: dict[Life, tuple[int, int]] = {}
        """Of the controller it obeys, and its own if it is the controller (0: it is not)."""
        self._states: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self._doubtful: dict[TopicPartition, set[int]] = {}
        tree.on_change = self._look_at_node

    def is_leader(self, broker_id: int, topic_partition: TopicPartition) -> bool:
        """Whether the metadata tree names the broker as the leader."""
        state = self._states.get(topic_partition)
        return state is not None and state.leader_and_isr.leader == broker_id

    # Brokers

    def look(self, broker: SimulatedBroker, life: Life) -> None:
        """After each turn of a broker."""
        services = life.services
        if services is None:
            return
        for partition in services.replica_manager.online_partitions():
            log = partition.log
            if log is None:
                continue
            key = (life, partition.topic_partition)
            seen = self._seen.get(key)
            if (
                seen is not None
                and seen.high_watermark == log.high_watermark
                and seen.leader_epoch == partition.leader_epoch
                and seen.is_leader == partition.is_leader
                and seen.log is log
            ):
                continue
            if seen is not None and seen.log is not log:
                seen = None  # the replica was deleted, and is there anew
            now = Seen(partition.leader_epoch, partition.is_leader, log.high_watermark, log)
            self._logs[broker.id, partition.topic_partition] = log
            self._look_at(broker, partition, seen, now)
            self._seen[key] = now
        self._look_at_controller(broker, life)

    def _look_at(self, broker: SimulatedBroker, partition: Partition, seen: Seen | None, now: Seen) -> None:
        name = f"{broker.name} {partition.topic_partition}"
        topic = Topic(partition.topic_partition, now.log.topic_id)
        committed = self._all_committed.get(topic)
        if committed is None:
            raise Violation(f"{name}: there was never a topic with this id")
        if seen is not None and now.leader_epoch < seen.leader_epoch:
            raise Violation(f"{name}: leader epoch went from {seen.leader_epoch} back to {now.leader_epoch}")
        begins = seen is None or not seen.is_leader or seen.leader_epoch != now.leader_epoch
        if now.is_leader and begins:
            self._look_at_leader(broker, partition, topic, committed)
        checked = 0 if seen is None else seen.high_watermark
        if now.is_leader and not begins and now.high_watermark < checked:
            raise Violation(f"{name}: HW went from {checked} back to {now.high_watermark}")
        if now.high_watermark > checked:
            end = committed.end
            committed.check(read(now.log, checked, now.high_watermark), broker.name)
            if committed.end > end:
                self._look_at_in_sync(partition.topic_partition, min(MIN_ISR, 1 + len(partition.in_sync.replicas)))

    def _look_at_leader(
        self, broker: SimulatedBroker, partition: Partition, topic: Topic, committed: Committed
    ) -> None:
        log, epoch = self._logs[broker.id, partition.topic_partition], partition.leader_epoch
        name = f"{broker.name} {partition.topic_partition}"
        self._note(f"{name}: leads in epoch {epoch}, ISR {sorted(partition.in_sync.isr)}, LEO {log.log_end_offset}")
        other = self._leaders.setdefault((topic, epoch), broker.name)
        if other != broker.name:
            raise Violation(f"{name}: {other} leads in epoch {epoch} as well")
        state = self._states.get(partition.topic_partition)
        if state is None or self._is_to_be_deleted(partition.topic_partition.topic):
            return
        if epoch < state.leader_and_isr.leader_epoch:
            return  # a broker that slept may begin to lead when others have long been elected
        doubtful = self._doubtful.setdefault(partition.topic_partition, set())
        doubtful.update(set(state.leader_and_isr.isr).difference({broker.id}, partition.in_sync.replicas))
        if broker.id in doubtful:
            raise NotJudged(f"{name} leads, and it was in sync when it lost its power, or its place")
        if log.log_end_offset < committed.end:
            raise Violation(f"{name}: leads with end {log.log_end_offset}, committed is {committed.end}")
        committed.check(read(log, 0, committed.end), broker.name)

    def _look_at_in_sync(self, topic_partition: TopicPartition, holders_min: int) -> None:
        """Each member of the ISR in the tree has all committed batches, and enough replicas have them."""
        state = self._states.get(topic_partition)
        if state is None or self._is_to_be_deleted(topic_partition.topic):
            return
        end = self.committed[topic_partition].end
        doubtful = self._doubtful.get(topic_partition, ())
        ends = {
            broker_id: log.log_end_offset for (broker_id, other), log in self._logs.items() if other == topic_partition
        }
        isr = state.leader_and_isr.isr
        for member in isr:
            if ends.get(member, 0) < end and member not in doubtful:
                raise Violation(f"{topic_partition}: {end} are committed, ISR is {isr}, and the ends are {ends}")
        if sum(own_end >= end or broker_id in doubtful for broker_id, own_end in ends.items()) < holders_min:
            raise Violation(f"{topic_partition}: {end} are committed, and the ends are {ends}")

    def lost_power(self, broker_id: int, leaders: Collection[ReplicaManager]) -> None:
        """`leaders`: those of the live brokers."""
        for topic_partition, state in self._states.items():
            hosted = [partition for leader in leaders if (partition := leader.hosted(topic_partition)) is not None]
            states = [partition.in_sync.state for partition in hosted]
            proposed = [
                state.sent_leader_and_isr if isinstance(state, PendingPartitionChange) else None for state in states
            ]
            epoch = state.leader_and_isr.partition_epoch
            valid = [each for each in proposed if each is not None and each.partition_epoch == epoch]
            if any(broker_id in each.isr for each in (state.leader_and_isr, *valid)):
                self._doubtful.setdefault(topic_partition, set()).add(broker_id)

    def _look_at_controller(self, broker: SimulatedBroker, life: Life) -> None:
        assert life.services is not None
        obeyed = life.services.replica_manager.controller_requests.controller_epoch
        term = life.services.controller.controllership
        before, epoch = self._epochs.get(life, (0, 0)), 0 if term is None else term.context.epoch
        if (obeyed, epoch) == before:
            return
        self._epochs[life] = obeyed, epoch
        if obeyed < before[0]:
            raise Violation(f"{broker.name} obeys controller epoch {obeyed} after {before[0]}")
        if epoch and epoch != before[1]:
            self._note(f"{broker.name}: controller in epoch {epoch}")
            other = self._controllers.setdefault(epoch, f"{broker.name} life {life.number}")
            if other != f"{broker.name} life {life.number}":
                raise Violation(f"{broker.name} and {other} are controllers in epoch {epoch}")
            if epoch < max(self._controllers):
                raise Violation(f"{broker.name} became controller in epoch {epoch} after {max(self._controllers)}")

    # The tree

    def _look_at_node(self, path: str) -> None:
        """A node has changed; only states of partitions are checked."""
        if not path.startswith(znodes.TOPICS + "/") or not path.endswith("/state"):
            return
        _, _, _, topic, _, partition, _ = path.split("/")
        topic_partition = TopicPartition(topic, int(partition))
        before, now = self._states.get(topic_partition), self.partition_state(topic_partition)
        if now is None:
            self._states.pop(topic_partition, None)
            self._doubtful.pop(topic_partition, None)
            return
        if before is None:
            self._begin(topic_partition)
        elif _epochs(now) < _epochs(before) or now.controller_epoch < before.controller_epoch:
            raise Violation(
                f"{path}: (leader epoch, partition epoch) went from {_epochs(before)} back to {_epochs(now)}"
            )
        controller_epoch = znodes.decode_controller_epoch(self._node(znodes.CONTROLLER_EPOCH).data)
        if now.controller_epoch != controller_epoch:
            raise Violation(f"{path}: written by controller {now.controller_epoch}, it is {controller_epoch}'s time")
        self._states[topic_partition] = now
        doubtful = self._doubtful.get(topic_partition, set())
        doubtful.intersection_update(now.leader_and_isr.isr)
        self._look_at_in_sync(topic_partition, holders_min=0)

    def _begin(self, topic_partition: TopicPartition) -> None:
        """A partition gets its first leader."""
        node = self._node(znodes.topic_path(topic_partition.topic))
        topic_id = topic_nodes.decode_topic(topic_partition.topic, node.data).topic_id
        for broker_id in {broker_id for broker_id, other in self._logs if other == topic_partition}:
            del self._logs[broker_id, topic_partition]
        committed = self.committed[topic_partition] = Committed(topic_partition)
        self._all_committed[Topic(topic_partition, topic_id)] = committed

    def partition_state(self, topic_partition: TopicPartition) -> LeaderIsrAndControllerEpoch | None:
        """The state of the partition in the tree."""
        try:
            node = self._node(znodes.partition_state_path(topic_partition))
        except NoNode:
            return None
        return topic_nodes.decode_partition_state(node.data, node.stat.version)

    def replicas(self, topic_partition: TopicPartition) -> ReplicaAssignment | None:
        """The replicas of the partition in the tree; None if there is no such topic."""
        try:
            node = self._node(znodes.topic_path(topic_partition.topic))
        except NoNode:
            return None
        return topic_nodes.decode_topic(topic_partition.topic, node.data).assignment[topic_partition.partition]

    def _is_to_be_deleted(self, topic: str) -> bool:
        """From then on replicas vanish one by one."""
        return self._tree.store.apply(Exists(znodes.delete_topic_path(topic)), 0) is not None

    def _node(self, path: str) -> DataAndStat:
        return cast("DataAndStat", self._tree.store.apply(GetData(path), 0))

    # Clients

    def acknowledge(self, topic_partition: TopicPartition, base_offset: int, values: list[bytes]) -> None:
        found = self._of_name(topic_partition)
        for offset, value in enumerate(values, base_offset):
            if not any(committed.holds(offset, value) for committed in found):
                raise Violation(
                    f"{topic_partition}: {value.decode()} was acknowledged at {offset}, where "
                    f"{[str(committed.at(offset)) for committed in found]} was committed"
                )
            self.acknowledged.setdefault(topic_partition, {})[offset] = value

    def check_read(self, topic_partition: TopicPartition, records: memoryview, who: str) -> int:
        """Check a read; returns the next offset to read (-1: nothing came)."""
        found = [Batch.of(batch) for batch in batches(records)]
        committed = self.committed[topic_partition]
        for batch in found:
            if committed.at(batch.base_offset) != batch:
                raise Violation(f"{who} was given {batch} of {topic_partition}, committed up to {committed.end}")
        return found[-1].last_offset + 1 if found else -1

    def _of_name(self, topic_partition: TopicPartition) -> list[Committed]:
        """Also those of topics of the same name that are gone: an answer may be late."""
        return [found for topic, found in self._all_committed.items() if topic.topic_partition == topic_partition]


def _epochs(state: LeaderIsrAndControllerEpoch) -> tuple[int, int]:
    return state.leader_and_isr.leader_epoch, state.leader_and_isr.partition_epoch
