"""Failures of a cluster, for a block of a test that uses it meanwhile.

    with scenarios.rolling_restart(cluster):
        produce(cluster)

What takes time (restarts, moves) happens in a thread while the block runs; the block ends when it is over.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

from odradek.testing.scenarios.cluster_record import ClusterRecord, NotedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from types import TracebackType

    from odradek.testing.scenarios.cluster_record import ClusterPort, When

OFFSETS_TOPIC = "__consumer_offsets"


class Meanwhile:
    """`begin` is called before the block, `end` after it; the steps run in a thread during it.

    The block waits for the thread. What a step raises is raised at the end of the block, unless the block has failed.
    """

    def __init__(
        self,
        steps: Iterable[Callable[[], object]] = (),
        *,
        begin: Callable[[], object] | None = None,
        end: Callable[[], object] | None = None,
        noted: NotedCluster | None = None,
    ) -> None:
        """`noted`: through which all of this changes the cluster."""
        self._steps = steps
        self._noted = noted
        self._begin = begin
        self._end = end
        self._pool = ThreadPoolExecutor(1, "odradek-scenario")
        self._running: Future[None] | None = None
        self._is_over = False
        self.done = 0
        """Steps that have been done."""

    def __enter__(self) -> Self:
        if self._begin is not None:
            try:
                self._begin()
            except BaseException:
                self._undo()
                raise
        self._is_in("meanwhile")
        self._running = self._pool.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = error is not None
        self._pool.shutdown()
        self._is_in("end")
        if self._end is not None:
            self._end()
        if error is None and self._running is not None:
            self._running.result()

    def _undo(self) -> None:
        """End what has begun in part. An error of it would hide the one that came before."""
        self._is_in("end")
        if self._end is not None:
            with suppress(Exception):
                self._end()

    @property
    def is_going_on(self) -> bool:
        """Whether there are steps left to do."""
        return self._running is not None and not self._running.done()

    def record(self) -> ClusterRecord:
        """What has been done to the cluster, for `replay`."""
        return ClusterRecord(() if self._noted is None else tuple(self._noted.steps))

    def _is_in(self, when: When) -> None:
        if self._noted is not None:
            self._noted.when = when

    def _run(self) -> None:
        for step in self._steps:
            if self._is_over:
                return
            step()
            self.done += 1


def rolling_restart(cluster: ClusterPort) -> Meanwhile:
    """Each broker is stopped in an orderly way and started again, one after the other."""
    noted = NotedCluster(cluster)
    return Meanwhile([partial(noted.do, "restart", broker_id=each) for each in sorted(cluster.brokers)], noted=noted)


def leader_moves(cluster: ClusterPort, topic: str, partition: int = 0, *, times: int = 5) -> Meanwhile:
    """The leader of a partition moves so often, each time to the next in-sync replica."""

    noted = NotedCluster(cluster)

    def move() -> None:
        replicas = sorted(cluster.in_sync_replicas(topic, partition))
        leader = cluster.leader(topic, partition)
        following = [each for each in replicas if each > leader] or [each for each in replicas if each != leader]
        if not following:
            raise ValueError(f"{topic}-{partition} has no other replica in sync that could lead: {replicas}")
        noted.do("move_leader", topic=topic, partition=partition, to=following[0])

    return Meanwhile(itertools.repeat(move, times), noted=noted)


def controller_loss(cluster: ClusterPort) -> Meanwhile:
    """The controller is killed, and started again after the block."""
    return _loss(cluster, lambda: cluster.controller)


def coordinator_loss(cluster: ClusterPort, partition: int = 0) -> Meanwhile:
    """The coordinator of the groups in a partition of `__consumer_offsets` is killed; after the block it starts again.

    A test cluster has one such partition, unless `offsets.topic.num.partitions` says otherwise.
    """
    return _loss(cluster, lambda: cluster.leader(OFFSETS_TOPIC, partition))


def network_partition(cluster: ClusterPort, *groups: Iterable[int], without_zookeeper: Iterable[int] = ()) -> Meanwhile:
    """The network between groups of brokers is cut until the end of the block, as by `Cluster.partition`."""
    noted = NotedCluster(cluster)
    cut = {"groups": [list(group) for group in groups], "without_zookeeper": list(without_zookeeper)}
    return Meanwhile(begin=partial(noted.do, "partition", **cut), end=partial(noted.do, "heal"), noted=noted)


def replay(cluster: ClusterPort, record: ClusterRecord | str) -> Meanwhile:
    """Do what a scenario has done, to the same brokers and in the same order. A text is the JSON of its record.

    Raises: ValueError for another text.
    """
    steps = (ClusterRecord.of_json(record) if isinstance(record, str) else record).steps
    noted = NotedCluster(cluster)

    def of(when: When) -> list[Callable[[], None]]:
        return [partial(noted.do, step.do, **step.arguments) for step in steps if step.when == when]

    def all_of(when: When) -> None:
        for step in of(when):
            step()

    return Meanwhile(of("meanwhile"), begin=partial(all_of, "begin"), end=partial(all_of, "end"), noted=noted)


def _loss(cluster: ClusterPort, victim: Callable[[], int]) -> Meanwhile:
    noted = NotedCluster(cluster)
    lost: list[int] = []

    def begin() -> None:
        lost.append(victim())
        noted.do("kill", broker_id=lost[0])

    def end() -> None:
        for broker_id in lost:
            noted.do("start_broker", broker_id=broker_id)

    return Meanwhile(begin=begin, end=end, noted=noted)
