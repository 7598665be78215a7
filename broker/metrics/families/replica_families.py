"""Metrics of the replicas of this broker: in all, and of each partition.

Kafka: ReplicaManager, Partition, UnifiedLog, ReplicaFetcherManager, FetcherLagMetrics, ReplicationQuotaManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.metrics.family import Family, Sample, counter, counters, gauge, gauges
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View
from odradek.broker.partition.partition import Partition
from odradek.broker.replication.replica_fetchers import ReplicaFetcherManager
from odradek.protocol.records.layout import NO_TIMESTAMP
from odradek.storage.log.unified_log import UnifiedLog

LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000

_MANAGER: Final = "kafka.server:type=ReplicaManager,name="
_CLUSTER: Final = "kafka.cluster:type=Partition,name="
_LOG: Final = "kafka.log:type=Log,name="
_FETCHERS: Final = "kafka.server:type=ReplicaFetcherManager,name="
_REPLICA: Final = labelled(clientId="Replica")
_MOVES: Final = "kafka.server:type=ReplicaAlterLogDirsManager,name="
_MOVE: Final = labelled(clientId="ReplicaAlterLogDirs")


def _of_manager(mbean: str, description: str, read: Callable[[View], float]) -> Family:
    return gauge(f"kafka_server_replicamanager_{mbean.lower()}", description, read, mbean=f"{_MANAGER}{mbean}")


def _of_leaders(mbean: str, description: str, counts: Callable[[Partition], bool]) -> Family:
    """The number of partitions led here for which `counts` is true."""

    def read(view: View) -> Iterator[Sample | None]:
        found = 0
        for partition in view.leaders:
            found += counts(partition)
            yield None
        yield "", found

    return gauges(f"kafka_server_replicamanager_{mbean.lower()}", (), description, read, mbean=f"{_MANAGER}{mbean}")


def _of_leaders_at(mbean: str, description: str, counts: Callable[[Partition, int, int], bool]) -> Family:
    """As `_of_leaders`; `counts` is called with the time and `transaction.max.timeout.ms`, both in ms."""

    def read(view: View) -> Iterator[Sample | None]:
        now_ms, timeout_ms = view.services.clock.time_ms(), view.services.config.transaction_max_timeout_ms
        found = 0
        for partition in view.leaders:
            found += counts(partition, now_ms, timeout_ms)
            yield None
        yield "", found

    return gauges(f"kafka_server_replicamanager_{mbean.lower()}", (), description, read, mbean=f"{_MANAGER}{mbean}")


def _has_late_transaction(partition: Partition, now_ms: int, timeout_ms: int) -> bool:
    """Kafka: ProducerStateManager.hasLateTransaction."""
    log = partition.log
    last_ms = NO_TIMESTAMP if log is None else log.state.producers.oldest_transaction_last_timestamp
    return last_ms > 0 and now_ms - last_ms > timeout_ms + LATE_TRANSACTION_BUFFER_MS


def _changes(mbean: str, description: str, read: Callable[[View], int]) -> Family:
    name = f"kafka_server_replicamanager_{mbean.removesuffix('PerSec').lower()}_total"
    return counter(name, description, read, mbean=f"{_MANAGER}{mbean}")


def _replication_factor(partition: Partition) -> int:
    """Without the replicas that a reassignment adds. 0 where this broker does not lead.

    Kafka: AssignmentState.replicationFactor.
    """
    return len(partition.in_sync.replicas) + 1 - len(partition.adding_replicas) if partition.is_leader else 0


def _is_under_replicated(partition: Partition) -> bool:
    return len(partition.in_sync.isr) < _replication_factor(partition)


def isr_surplus(partition: Partition) -> int | None:
    """How many more replicas than `min.insync.replicas` are in the ISR; None where this broker does not lead."""
    log = partition.log
    if not partition.is_leader or log is None:
        return None
    return len(partition.in_sync.isr) - partition.in_sync.min_isr(log)


def _is_under_min_isr(partition: Partition) -> bool:
    surplus = isr_surplus(partition)
    return surplus is not None and surplus < 0


def _of_partitions(mbean: str, description: str, read: Callable[[Partition], float]) -> Family:
    return gauges(
        f"kafka_cluster_partition_{mbean.lower()}",
        ("topic", "partition"),
        description,
        lambda view: ((labels, read(partition)) for labels, partition in view.labelled_partitions),
        mbean=f"{_CLUSTER}{mbean},topic=,partition=",
    )


def _of_logs(mbean: str, description: str, read: Callable[[UnifiedLog], float]) -> Family:
    return gauges(
        f"kafka_log_log_{mbean.lower()}",
        ("topic", "partition", "is_future"),
        description,
        lambda view: ((labels, read(log)) for labels, log in view.labelled_logs),
        mbean=f"{_LOG}{mbean},topic=,partition=",
    )


def _lag_of_transactions(partition: Partition) -> int:
    log = partition.log
    return 0 if log is None else log.high_watermark - log.last_stable_offset


def _producer_ids(view: View) -> Iterator[Sample | None]:
    found = 0
    for partition in view.partitions:
        if partition.log is not None:
            found += len(partition.log.active_producers())
        yield None
    yield "", found


# Fetchers


def _lags(view: View) -> Iterator[Sample | None]:
    fetchers = view.services.replica_manager.fetchers
    if view.has_too_many_partitions or not isinstance(fetchers, ReplicaFetcherManager):
        return
    for _, fetcher in fetchers.running:
        for found in list(fetcher.states):
            state = fetcher.states.get(found)
            if state is not None and state.lag is not None:
                yield labelled(clientId=fetcher.name, topic=found.topic, partition=found.partition), max(0, state.lag)


def _max_lag(view: View) -> Iterator[Sample | None]:
    fetchers = view.services.replica_manager.fetchers
    lag = 0
    if isinstance(fetchers, ReplicaFetcherManager):
        for _, fetcher in fetchers.running:
            for found in list(fetcher.states):
                state = fetcher.states.get(found)
                lag = max(lag, 0 if state is None or state.lag is None else state.lag)
                yield None
    yield _REPLICA, lag


def _failed(view: View) -> Iterator[Sample]:
    yield _REPLICA, len(view.services.replica_manager.partitions.failed_partitions)


def _max_lag_of_moves(view: View) -> Iterator[Sample | None]:
    longest = 0
    for lag in view.services.replica_manager.moves.lags():
        longest = max(longest, lag)
        yield None
    yield _MOVE, longest


def _failed_moves(view: View) -> Iterator[Sample]:
    yield _MOVE, len(view.services.replica_manager.moves.failed)


def _fetched(value: Callable[[tuple[int, int]], int]) -> Callable[[View], Iterator[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        fetchers = view.services.replica_manager.fetchers
        if isinstance(fetchers, ReplicaFetcherManager):
            for leader, fetcher in fetchers.running:
                labels = labelled(clientId=fetcher.name, broker=f"{leader.host}:{leader.port}")
                yield labels, value((fetcher.requests, fetcher.received_bytes))

    return read


# Quotas of replication


def _of_quota(kind: str, description: str, read: Callable[[View], float]) -> Family:
    name = f"kafka_server_{kind.lower()}_byte_rate"
    return gauge(name, description, read, mbean=f"kafka.server:type={kind}#byte-rate")


def _throttled_of_followers(view: View) -> float:
    fetchers = view.services.replica_manager.fetchers
    return fetchers.throttled_bytes_per_second if isinstance(fetchers, ReplicaFetcherManager) else 0


REPLICA_FAMILIES: Final = (
    _of_manager("PartitionCount", "Partitions that this broker hosts.", lambda view: len(view.partitions)),
    _of_manager("LeaderCount", "Partitions that this broker leads.", lambda view: len(view.leaders)),
    _of_manager(
        "OfflineReplicaCount",
        "Partitions in failed log directories.",
        lambda view: view.services.replica_manager.partitions.offline_count,
    ),
    _of_leaders(
        "UnderReplicatedPartitions",
        "Partitions led here of which a replica is not in sync.",
        _is_under_replicated,
    ),
    _of_leaders(
        "UnderMinIsrPartitionCount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        _is_under_min_isr,
    ),
    _of_leaders(
        "AtMinIsrPartitionCount",
        "Partitions led here with just min.insync.replicas in sync.",
        lambda partition: isr_surplus(partition) == 0,
    ),
    _of_leaders(
        "ReassigningPartitions",
        "Partitions led here that are being reassigned.",
        lambda partition: partition.is_reassigning,
    ),
    _of_leaders_at(
        "PartitionsWithLateTransactionsCount",
        "Partitions led here with a transaction that is open for longer than transaction.max.timeout.ms and five "
        "minutes.",
        _has_late_transaction,
    ),
    gauges(
        "kafka_server_replicamanager_produceridcount",
        (),
        "Producer ids with state in the partitions of this broker.",
        _producer_ids,
        mbean=f"{_MANAGER}ProducerIdCount",
    ),
    _changes(
        "IsrExpandsPerSec",
        "Replicas that joined an ISR.",
        lambda view: view.services.replica_manager.partitions.isr_changes.expanded,
    ),
    _changes(
        "IsrShrinksPerSec",
        "ISRs that replicas left.",
        lambda view: view.services.replica_manager.partitions.isr_changes.shrunk,
    ),
    _changes(
        "FailedIsrUpdatesPerSec",
        "Changes of an ISR that the controller refused.",
        lambda view: view.services.replica_manager.partitions.isr_changes.failed,
    ),
    gauges(
        "kafka_server_replicafetchermanager_maxlag",
        ("clientId",),
        "The most records that a partition followed here is behind its leader.",
        _max_lag,
        mbean=f"{_FETCHERS}MaxLag,clientId=",
    ),
    gauges(
        "kafka_server_replicafetchermanager_failedpartitionscount",
        ("clientId",),
        "Partitions that are not followed because of an error, until the controller names their leader again.",
        _failed,
        mbean=f"{_FETCHERS}FailedPartitionsCount,clientId=",
    ),
    gauges(
        "kafka_server_replicaalterlogdirsmanager_maxlag",
        ("clientId",),
        "The most records that the copy of a log lacks, of those that move to another directory.",
        _max_lag_of_moves,
        mbean=f"{_MOVES}MaxLag,clientId=",
    ),
    gauges(
        "kafka_server_replicaalterlogdirsmanager_failedpartitionscount",
        ("clientId",),
        "Moves to another directory that were given up, until they begin again.",
        _failed_moves,
        mbean=f"{_MOVES}FailedPartitionsCount,clientId=",
    ),
    gauges(
        "kafka_server_fetcherlagmetrics_consumerlag",
        ("clientId", "topic", "partition"),
        "Records that a partition followed here is behind its leader.",
        _lags,
        mbean="kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=,topic=,partition=",
    ),
    counters(
        "kafka_server_fetcherstats_requests_total",
        ("clientId", "broker"),
        "Fetches of this broker that a leader answered.",
        _fetched(lambda counts: counts[0]),
        mbean="kafka.server:type=FetcherStats,name=RequestsPerSec,clientId=,brokerHost=,brokerPort=",
    ),
    counters(
        "kafka_server_fetcherstats_bytes_total",
        ("clientId", "broker"),
        "Bytes that this broker fetched from a leader.",
        _fetched(lambda counts: counts[1]),
        mbean="kafka.server:type=FetcherStats,name=BytesPerSec,clientId=,brokerHost=,brokerPort=",
    ),
    _of_quota(
        "LeaderReplication",
        "Bytes per second of throttled partitions that this broker sends to followers.",
        lambda view: view.services.replica_manager.reads.throttle.bytes_per_second,
    ),
    _of_quota(
        "FollowerReplication",
        "Bytes per second of throttled partitions that this broker fetches from leaders.",
        _throttled_of_followers,
    ),
    _of_quota(
        "AlterLogDirsReplication",
        "Bytes per second of logs that move to another directory.",
        lambda view: view.services.replica_manager.moves.bytes_per_second,
    ),
    _of_partitions("UnderReplicated", "1 if led here and a replica is not in sync.", _is_under_replicated),
    _of_partitions("UnderMinIsr", "1 if led here and fewer replicas are in sync than needed.", _is_under_min_isr),
    _of_partitions(
        "AtMinIsr", "1 if led here and just as many replicas are in sync as needed.", lambda one: isr_surplus(one) == 0
    ),
    _of_partitions("InSyncReplicasCount", "Replicas in sync; 0 if not led here.", lambda one: len(one.in_sync.isr)),
    _of_partitions(
        "ReplicasCount",
        "Replicas, without those that a reassignment adds; 0 if not led here.",
        _replication_factor,
    ),
    _of_partitions(
        "LastStableOffsetLag", "Records that readers of committed transactions cannot read yet.", _lag_of_transactions
    ),
    _of_logs("Size", "Bytes of the log's segments.", lambda log: log.size),
    _of_logs("NumLogSegments", "Segments of the log.", lambda log: len(log.segments)),
    _of_logs("LogStartOffset", "The first offset of the log.", lambda log: log.log_start_offset),
    _of_logs("LogEndOffset", "The offset after the last record of the log.", lambda log: log.log_end_offset),
)
