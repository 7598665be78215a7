"""The fetchers of a broker: `num.replica.fetchers` for each leader of followed partitions.

The name of a partition decides its fetcher. A fetcher starts with its first partition and ends with its last. Its
requests wait for data, so an added partition is first fetched after the pending request is answered.

Kafka: AbstractFetcherManager, ReplicaFetcherManager, AbstractFetcherManager.getFetcherId.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from odradek.coordinator.partitioning import java_string_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.broker.partition.partition import Partition
    from odradek.broker.replication.fetcher_settings import FetchersSettings
    from odradek.broker.replication.replica_fetcher import ReplicaFetcher
    from odradek.controller.model.broker_info import EndPoint
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.manager.log_manager import LogManager

log = logging.getLogger(__name__)


class Fetchers(Protocol):
    """Replicates the logs of leaders; `ReplicaFetcherManager` implements it."""

    def add(self, partitions: Iterable[Partition]) -> None:
        """Follow the present leaders of these partitions from their log ends, and no former leader."""

    def remove(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop to fetch these partitions."""

    def resize(self) -> None:
        """Apply a change of `num.replica.fetchers`."""

    def begin_shutdown(self) -> None:
        """From now on follow no further partitions and no new epochs; the present fetches continue."""

    def shutdown(self) -> None:
        """Stop all fetches; later calls of `add` do nothing."""


class ReplicaFetcherManager:
    """All fetchers of one broker. Implements `Fetchers`. The callables are those of `ReplicaFetcher`."""

    def __init__(
        self,
        partitions: HostedPartitions,
        log_manager: LogManager,
        settings: FetchersSettings,
        *,
        complete_delayed: Callable[[TopicPartition], None],
        mark_for_truncation: Callable[[TopicPartition, int], None],
    ) -> None:
        self._partitions = partitions
        self._log_manager = log_manager
        self._complete_delayed = complete_delayed
        self._mark_for_truncation = mark_for_truncation
        self._settings = settings
        self._fetchers: dict[tuple[int, int], tuple[EndPoint, ReplicaFetcher]] = {}
        self._count = settings.count()
        self._is_ending = False

    def add(self, partitions: Iterable[Partition]) -> None:
        if self._is_ending:
            self.remove(partition.topic_partition for partition in partitions)
            return
        for partition in partitions:
            topic_partition, leader_id = partition.topic_partition, partition.leader_id
            self._drop(topic_partition)
            end_point = None if leader_id is None else self._settings.end_point(leader_id)
            if leader_id is None or end_point is None:
                log.error(
                    "Not fetching %s: leader %s has no endpoint on the inter-broker listener",
                    topic_partition,
                    leader_id,
                )
                continue
            log.info("Fetching %s in epoch %d from broker %d", topic_partition, partition.leader_epoch, leader_id)
            index = fetcher_index(topic_partition, self._count)
            self._fetcher(leader_id, index, end_point).add(partition)
        self._end_idle()

    def remove(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._drop(topic_partition)
        self._end_idle()

    @property
    def throttled_bytes_per_second(self) -> float:
        """What all fetchers received of throttled partitions."""
        return self._settings.fetcher.quota.bytes_per_second

    @property
    def running(self) -> list[tuple[EndPoint, ReplicaFetcher]]:
        """The fetchers, each with the listener of its leader."""
        return list(self._fetchers.values())

    def resize(self) -> None:
        if self._settings.count() == self._count:
            return
        self._count = self._settings.count()
        log.info("Using %d replica fetchers for each leader from now on", self._count)
        followed = [partition for _, fetcher in self._fetchers.values() for partition in self._followed(fetcher)]
        self._close_all()
        self.add(followed)

    def begin_shutdown(self) -> None:
        """Implements `Fetchers`. After a controlled shutdown other brokers lead this broker's partitions, and it is not
        in their ISR. If it followed them, their leaders would count it as caught up and wait for it after its end;
        Apache Kafka's leaders would wait until the next append.
        """
        self._is_ending = True

    def shutdown(self) -> None:
        self._is_ending = True
        self._close_all()

    def _fetcher(self, leader_id: int, index: int, end_point: EndPoint) -> ReplicaFetcher:
        running = self._fetchers.get((leader_id, index))
        left: list[Partition] = []
        if running is not None:
            where, fetcher = running
            if where == end_point:
                return fetcher
            fetcher.close()
            # A leader that only changed its listener keeps its epochs; a restarted one has new epochs everywhere.
            left = [partition for partition in self._followed(fetcher) if partition.leader_id == leader_id]
        # Imported here: a single broker never needs them.
        from odradek.broker.replication.remote_leader import RemoteLeaderEndPoint
        from odradek.broker.replication.replica_fetcher import ReplicaFetcher

        settings = self._settings
        link = settings.make_link(end_point, client_id=f"broker-{settings.fetcher.broker_id}-fetcher-{index}")
        fetcher = ReplicaFetcher(
            f"ReplicaFetcherThread-{index}-{leader_id}",
            RemoteLeaderEndPoint(leader_id, link, settings.leader),
            self._partitions,
            self._log_manager,
            settings.fetcher,
            complete_delayed=self._complete_delayed,
            mark_for_truncation=self._mark_for_truncation,
        )
        fetcher.start()
        self._fetchers[leader_id, index] = end_point, fetcher
        for partition in left:
            fetcher.add(partition)
        return fetcher

    def _followed(self, fetcher: ReplicaFetcher) -> list[Partition]:
        hosted = map(self._partitions.hosted, fetcher.states)
        return [partition for partition in hosted if partition is not None]

    def _drop(self, topic_partition: TopicPartition) -> None:
        self._partitions.failed_partitions.discard(topic_partition)
        for _, fetcher in self._fetchers.values():
            fetcher.states.remove(topic_partition)

    def _end_idle(self) -> None:
        for key, (_, fetcher) in list(self._fetchers.items()):
            if not fetcher.states:
                del self._fetchers[key]
                fetcher.close()

    def _close_all(self) -> None:
        for _, fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()


def fetcher_index(topic_partition: TopicPartition, count: int) -> int:
    """The fetcher (0 to `count` - 1) of a partition, in Java's arithmetic: `Utils.abs(...) % count`."""
    value = (31 * java_string_hash(topic_partition.topic) + topic_partition.partition) & 0xFFFFFFFF
    value = value - 0x1_0000_0000 if value & 0x8000_0000 else value
    return (0 if value == -0x8000_0000 else abs(value)) % count
