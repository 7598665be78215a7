"""What must hold at each step of a simulated cluster, whatever happens to it.

The oracle looks into the brokers after each of their turns and remembers what has been committed: the batches below a
high watermark. From then on they are there for good: a replica whose high watermark has passed an offset holds the very
batch there, a new leader holds them all, a reader sees nothing else, and what was acknowledged is among them.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller import znodes
from odradek.controller.metadata_tree import GetData, NoNode
from odradek.protocol.records.batch import RecordBatch, batches
from odradek.storage.fetch_data import FetchIsolation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.partition import Partition
    from odradek.controller.leader_and_isr import LeaderIsrAndControllerEpoch
    from odradek.controller.metadata_tree import DataAndStat
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.unified_log import UnifiedLog
    from tests.support.simulation.broker import Life, SimulatedBroker
    from tests.support.simulation.tree_server import TreeServer

READ_BYTES = 1 << 20


class Violation(AssertionError):
    """Something that must never happen."""


class Batch(NamedTuple):
    """What makes a batch what it is: two of them that are equal are the same bytes."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    data: bytes

    @classmethod
    def of(cls, batch: RecordBatch) -> Batch:
        data = bytes(batch.buffer[: batch.size_in_bytes])
        return cls(batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.crc, data)

    @property
    def values(self) -> tuple[bytes, ...]:
        batch = RecordBatch(memoryview(self.data))
        return () if batch.is_control else tuple(bytes(record.value or b"") for record in batch.records())

    def __str__(self) -> str:
        names = b",".join(self.values).decode()
        return f"[{self.base_offset}-{self.last_offset} epoch {self.leader_epoch}: {names}]"


class Seen(NamedTuple):
    """A replica when the oracle looked last."""

    leader_epoch: int
    is_leader: bool
    high_watermark: int
    log: UnifiedLog


class Committed:
    """The batches of one partition that are there for good."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.name = str(topic_partition)
        self.batches: list[Batch] = []
        self._bases: list[int] = []

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def check(self, found: Iterable[Batch], who: str) -> None:
        """Each of these is what was committed at its place; what is beyond the end is committed by this."""
        for batch in found:
            if batch.base_offset == self.end:
                self.batches.append(batch)
                self._bases.append(batch.base_offset)
                continue
            place = self.at(batch.base_offset)
            if place != batch:
                raise Violation(f"{self.name}: {who} has {batch} where {place} was committed (end {self.end})")

    def at(self, offset: int) -> Batch | None:
        index = bisect_right(self._bases, offset) - 1
        return self.batches[index] if index >= 0 and self.batches[index].last_offset >= offset else None


class Oracle:
    """See the module."""

    def __init__(self, tree: TreeServer, note: Callable[[str], None]) -> None:
        self.committed: dict[TopicPartition, Committed] = {}
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {}
        self._tree = tree
        self._note = note
        self._seen: dict[tuple[Life, TopicPartition], Seen] = {}
        self._leaders: dict[tuple[TopicPartition, int], str] = {}
        self._controllers: dict[int, str] = {}
        self._epochs: dict[Life, tuple[int, int]] = {}
        """Of the controller it obeys, and its own if it is the controller (0: it is not)."""
        self._states: dict[str, tuple[int, int]] = {}
        tree.on_change = self._look_at_node

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
            now = Seen(partition.leader_epoch, partition.is_leader, log.high_watermark, log)
            self._look_at(broker, partition, seen, now)
            self._seen[key] = now
        self._look_at_controller(broker, life)

    def _look_at(self, broker: SimulatedBroker, partition: Partition, seen: Seen | None, now: Seen) -> None:
        name = f"{broker.name} {partition.topic_partition}"
        committed = self.committed.setdefault(partition.topic_partition, Committed(partition.topic_partition))
        if seen is not None and now.leader_epoch < seen.leader_epoch:
            raise Violation(f"{name}: leader epoch went from {seen.leader_epoch} back to {now.leader_epoch}")
        begins = seen is None or not seen.is_leader or seen.leader_epoch != now.leader_epoch
        if now.is_leader and begins:
            isr, end = sorted(partition.in_sync.isr), now.log.log_end_offset
            self._note(f"{name}: leads in epoch {now.leader_epoch}, ISR {isr}, LEO {end}")
            other = self._leaders.setdefault((partition.topic_partition, now.leader_epoch), broker.name)
            if other != broker.name:
                raise Violation(f"{name}: {other} leads in epoch {now.leader_epoch} as well")
            if self._is_newest(partition.topic_partition, now.leader_epoch):
                if now.log.log_end_offset < committed.end:
                    raise Violation(f"{name}: leads with end {now.log.log_end_offset}, committed is {committed.end}")
                committed.check(read(now.log, 0, committed.end), broker.name)
        checked = 0 if seen is None or seen.log is not now.log else seen.high_watermark
        if now.is_leader and not begins and seen is not None and now.high_watermark < seen.high_watermark:
            raise Violation(f"{name}: HW went from {seen.high_watermark} back to {now.high_watermark}")
        if now.high_watermark > checked:
            committed.check(read(now.log, checked, now.high_watermark), broker.name)

    def _is_newest(self, topic_partition: TopicPartition, leader_epoch: int) -> bool:
        """A broker that slept may begin to lead when others have long been elected."""
        return leader_epoch >= self._states[znodes.partition_state_path(topic_partition)][1]

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

    def _look_at_node(self, path: str) -> None:
        """Whoever writes the state of a partition: its epochs only grow."""
        if not path.startswith(znodes.TOPICS + "/") or not path.endswith("/state"):
            return
        state = self._decode_state(path)
        if state is None:
            return
        before, now = self._states.get(path, (0, 0)), (state.controller_epoch, state.leader_and_isr.leader_epoch)
        if now[0] < before[0] or now[1] < before[1]:
            raise Violation(f"{path}: (controller epoch, leader epoch) went from {before} back to {now}")
        self._states[path] = now

    # Clients

    def acknowledge(self, topic_partition: TopicPartition, base_offset: int, values: list[bytes]) -> None:
        committed = self.committed[topic_partition]
        for offset, value in enumerate(values, base_offset):
            batch = committed.at(offset)
            if batch is None or batch.values[offset - batch.base_offset] != value:
                raise Violation(
                    f"{topic_partition}: {value.decode()} was acknowledged at {offset}, where {batch} was committed"
                )
            self.acknowledged.setdefault(topic_partition, {})[offset] = value

    def check_read(self, topic_partition: TopicPartition, records: memoryview, who: str) -> int:
        """What a reader was given; answers the next offset to read (-1: nothing came)."""
        found = [Batch.of(batch) for batch in batches(records)]
        committed = self.committed[topic_partition]
        for batch in found:
            if committed.at(batch.base_offset) != batch:
                raise Violation(f"{who} was given {batch} of {topic_partition}, committed up to {committed.end}")
        return found[-1].last_offset + 1 if found else -1

    # The end

    def partition_state(self, topic_partition: TopicPartition) -> LeaderIsrAndControllerEpoch | None:
        """What the tree says about the partition."""
        return self._decode_state(znodes.partition_state_path(topic_partition))

    def _decode_state(self, path: str) -> LeaderIsrAndControllerEpoch | None:
        try:
            node: DataAndStat = self._tree.store.apply(GetData(path), 0)
        except NoNode:
            return None
        return znodes.decode_partition_state(node.data, node.stat.version)


def read(log: UnifiedLog, start: int, end: int) -> list[Batch]:
    """The batches from one offset to another (exclusive), which are batch boundaries."""
    found: list[Batch] = []
    while start < end:
        records = log.read(start, READ_BYTES, FetchIsolation.LOG_END, True).records
        data = records if isinstance(records, memoryview) else memoryview(records.read())
        before = start
        for batch in batches(data):
            if start <= batch.base_offset < end:
                found.append(Batch.of(batch))
                start = batch.last_offset + 1
        if start == before:
            raise Violation(f"{log.topic_partition}: nothing to read at {start}, end {end}, LEO {log.log_end_offset}")
    return found
