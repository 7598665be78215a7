"""What one scrape reads: the parts of the broker, and the lists that several metrics go through."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from odradek.broker.meters.broker_topic_stats import BrokerTopicMetrics
from odradek.broker.metrics.labels import labelled

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
    from odradek.broker.meters.connection_meters import ConnectionMeters
    from odradek.broker.meters.verification_stats import VerificationStats
    from odradek.broker.metrics.loop_delay import LoopDelay
    from odradek.broker.metrics.request_metrics import RequestMeters
    from odradek.broker.network.listeners.socket_server import SocketServer
    from odradek.broker.network.responses.response_sender import SentBytes
    from odradek.broker.partition.partition import Partition
    from odradek.coordinator.group.state.group_metadata import GroupMetadata
    from odradek.coordinator.load_times import LoadTimes
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.timer.sliced_work import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many series a scrape may have. Beyond a limit all series of that kind are left out."""

    partitions: int
    topics: int
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the numbers come from."""

    services: Services
    sockets: SocketServer
    requests: RequestMeters
    topic_stats: BrokerTopicStats
    loop_delay: LoopDelay
    sent_bytes: SentBytes
    connections: ConnectionMeters
    verifications: VerificationStats
    group_loads: LoadTimes
    transaction_loads: LoadTimes
    started_ms: int
    """Wall clock."""
    limits: Limits


class View:
    """One scrape. `prepare` makes the lists that several metrics go through; they stay the same for all of them."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.services = sources.services
        self.requests = sources.requests
        self.topic_stats = sources.topic_stats
        self.partitions: list[Partition] = []
        """All that this broker hosts and that are online."""
        self.leaders: list[Partition] = []
        """Those that this broker leads."""
        self.groups: list[GroupMetadata] = []
        """The groups that this broker coordinates."""
        self.all_topics = BrokerTopicMetrics()
        """The counters of all topics together."""
        self.labelled_partitions: list[tuple[str, Partition]] = []
        """All that this broker hosts, with their labels; none when there are too many."""
        self.labelled_logs: list[tuple[str, UnifiedLog]] = []
        """The logs of this broker with their labels, future logs marked; none when there are too many."""

    def prepare(self) -> Steps:
        """Make the lists and sums, which takes microseconds for each partition and topic."""
        unhosted = self.topic_stats.counted_topics
        self.groups.extend(self.services.group_coordinator.groups)
        for partition in self.services.replica_manager.online_partitions():
            self.partitions.append(partition)
            if partition.is_leader:
                self.leaders.append(partition)
            unhosted.discard(partition.topic_partition.topic)
            yield None
        yield from self.topic_stats.forget_topics(unhosted)
        yield from self.topic_stats.sum_up(self.all_topics)
        if not self.has_too_many_partitions:
            for partition in self.partitions:
                found = partition.topic_partition
                self.labelled_partitions.append((labelled(topic=found.topic, partition=found.partition), partition))
                yield None
        logs = self.services.log_manager.all_logs()
        if len(logs) <= self.sources.limits.partitions:
            for log in logs:
                self.labelled_logs.append((_log_labels(log), log))
                yield None

    @property
    def has_too_many_partitions(self) -> bool:
        return len(self.partitions) > self.sources.limits.partitions

    @cached_property
    def open_connections(self) -> Counter[str]:
        """By the name of the listener."""
        counts = Counter(connection.listener_name for connection in self.sources.sockets.connections)
        for end_point in self.sources.sockets.end_points:
            counts.setdefault(end_point.listener_name, 0)
        return counts

    @cached_property
    def has_too_many_topics(self) -> bool:
        return len(self.topic_stats.topics) > self.sources.limits.topics


def _log_labels(log: UnifiedLog) -> str:
    labels = labelled(topic=log.topic_partition.topic, partition=log.topic_partition.partition)
    return f'{labels},is_future="true"' if log.is_future else labels
