"""Metrics of the broker itself: state, network, waiting requests, sessions, logs, and Odradek's own.

Kafka: KafkaServer, SocketServer, RequestChannel, KafkaRequestHandlerPool, DelayedOperationPurgatory, FetchSessionCache,
LogManager, LogFlushStats, AppInfoParser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final, cast

from odradek.broker.machine.worker_processes import WorkerProcesses
from odradek.broker.metrics.family import Family, Histograms, Sample, counter, counters, gauge, gauges, summaries
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory

RUNNING: Final = 3
"""BrokerState RUNNING: the endpoint is there from just before until just after."""

UNLIMITED: Final = 2**63 - 1

PROCESS_IO: Final = Path("/proc/self/io")

_PROCESSOR: Final = labelled(networkProcessor=0)

Purgatory = DelayedOperationPurgatory[DelayedOperation]

_VERSION: Final = version("odradek")
"""Read once: it lies in a file of the installation, and parsing that takes milliseconds."""


def _purgatories(view: View) -> Iterator[tuple[str, Purgatory]]:
    replicas = view.services.replica_manager
    found = (replicas.produce_purgatory, replicas.fetch_purgatory, replicas.delete_records_purgatory)
    for purgatory in (*cast("tuple[Purgatory, ...]", found), *view.services.group_coordinator.purgatories):
        yield labelled(delayedOperation=purgatory.name), purgatory


def _of_purgatories(mbean: str, description: str, read: Callable[[Purgatory], int]) -> Family:
    return gauges(
        f"kafka_server_delayedoperationpurgatory_{mbean.lower()}",
        ("delayedOperation",),
        description,
        lambda view: ((labels, read(purgatory)) for labels, purgatory in _purgatories(view)),
        mbean=f"kafka.server:type=DelayedOperationPurgatory,name={mbean},delayedOperation=",
    )


def _closed(view: View) -> Iterator[Sample]:
    for reason, count in list(view.sources.sockets.closed_by_reason.items()):
        yield labelled(reason=reason.name), count


def _log_dirs(view: View) -> Iterator[Sample]:
    for log_dir in view.services.log_manager.log_dirs:
        yield labelled(logDirectory=log_dir.path), int(not log_dir.is_online)


def _of_disk(what: str, direction: str) -> Family:
    """As Linux counts it for the process. Kafka: LinuxIoMetricsCollector."""

    def read(view: View) -> int:
        lines = dict(line.split(": ") for line in PROCESS_IO.read_text("ascii").splitlines())
        return int(lines[f"{what}_bytes"])

    return gauge(
        f"kafka_server_kafkaserver_linux_disk_{what}_bytes",
        f"Bytes that the kernel has moved {direction} disks for the broker.",
        read,
        mbean=f"kafka.server:type=KafkaServer,name=linux-disk-{what}-bytes",
    )


def _memory_available(view: View) -> int:
    pool = view.sources.sockets.memory_pool
    return UNLIMITED if pool is None else pool.available


def _memory_used(view: View) -> int:
    pool = view.sources.sockets.memory_pool
    return 0 if pool is None else pool.size - pool.available


def _expired_produces(view: View) -> Iterator[Sample]:
    stats = view.topic_stats
    yield "", stats.expired_produces
    if len(stats.expired_produces_of) <= view.sources.limits.partitions:
        for (topic, partition), count in sorted(stats.expired_produces_of.items()):
            yield labelled(topic=topic, partition=partition), count


def _expired_operations(view: View) -> Iterator[Sample]:
    for kind, count in view.topic_stats.expired_fetches.items():
        yield labelled(fetcherType=kind), count


def _flush_times(view: View) -> Histograms:
    yield "", view.services.log_manager.environment.flush_times_ms


def _loop_delay(view: View) -> Histograms:
    yield "", view.sources.loop_delay.delay_ms


def _workers(index: int) -> Callable[[View], int]:
    def read(view: View) -> int:
        workers = view.services.log_manager.environment.workers
        return workers.counts[index] if isinstance(workers, WorkerProcesses) else 0

    return read


def _left_out(view: View) -> Iterator[Sample]:
    yield labelled(series="partitions"), int(view.has_too_many_partitions)
    yield labelled(series="topics"), int(view.has_too_many_topics)
    yield labelled(series="groups"), int(len(view.groups) > view.sources.limits.groups)


def _info(view: View) -> Iterator[Sample]:
    labels = labelled(version=_VERSION, broker_id=view.services.broker_id, cluster_id=view.services.cluster_id)
    yield labels, 1


BROKER_FAMILIES: Final = (
    gauge(
        "kafka_server_kafkaserver_brokerstate",
        "The state of the broker, as Kafka numbers it: 3 is running.",
        lambda view: RUNNING,
        mbean="kafka.server:type=KafkaServer,name=BrokerState",
    ),
    gauge(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "The share of the last seconds in which the event loop waited for work, 0 to 1.",
        lambda view: view.sources.loop_delay.idle_share,
        mbean="kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    ),
    gauges(
        "kafka_network_processor_idle_percent",
        ("networkProcessor",),
        "The same: the event loop is the only processor.",
        lambda view: ((_PROCESSOR, view.sources.loop_delay.idle_share),),
        mbean="kafka.network:type=Processor,name=IdlePercent,networkProcessor=",
    ),
    gauge(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "The same: the event loop is the only request handler.",
        lambda view: view.sources.loop_delay.idle_share,
        mbean="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
    ),
    gauge(
        "kafka_network_requestchannel_requestqueuesize",
        "Always 0: a request is handled where it is read.",
        lambda view: 0,
        mbean="kafka.network:type=RequestChannel,name=RequestQueueSize",
    ),
    gauge(
        "kafka_network_requestchannel_responsequeuesize",
        "Always 0: a response goes to its connection where it is made.",
        lambda view: 0,
        mbean="kafka.network:type=RequestChannel,name=ResponseQueueSize",
    ),
    gauge(
        "kafka_network_socketserver_memorypoolavailable",
        "Bytes of queued.max.request.bytes that are left; without that limit the largest number of 63 bits.",
        _memory_available,
        mbean="kafka.network:type=SocketServer,name=MemoryPoolAvailable",
    ),
    gauge(
        "kafka_network_socketserver_memorypoolused",
        "Bytes of queued.max.request.bytes that requests use.",
        _memory_used,
        mbean="kafka.network:type=SocketServer,name=MemoryPoolUsed",
    ),
    _of_disk("read", "from"),
    _of_disk("write", "to"),
    gauge(
        "kafka_server_app_info_start_time_ms",
        "When the broker started, in milliseconds since 1970.",
        lambda view: view.sources.started_ms,
        mbean="kafka.server:type=app-info#start-time-ms",
    ),
    counters(
        "kafka_server_delayedproducemetrics_expires_total",
        ("topic", "partition"),
        "Partitions of produce requests whose replicas did not have the records in time: in all, and of a partition.",
        _expired_produces,
        mbean="kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec",
    ),
    counters(
        "kafka_server_delayedfetchmetrics_expires_total",
        ("fetcherType",),
        "Fetches that were answered because their wait was over.",
        _expired_operations,
        mbean="kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec,fetcherType=",
    ),
    counter(
        "kafka_server_delayeddeleterecordsmetrics_expires_total",
        "Partitions of DeleteRecords requests whose replicas did not follow in time.",
        lambda view: view.topic_stats.expired_delete_records,
        mbean="kafka.server:type=DelayedDeleteRecordsMetrics,name=ExpiresPerSec",
    ),
    _of_purgatories("NumDelayedOperations", "Operations that wait.", lambda one: one.num_delayed),
    _of_purgatories("PurgatorySize", "Keys under which operations wait.", lambda one: one.watched),
    gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions.",
        lambda view: len(view.services.fetch_sessions),
        mbean="kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
    ),
    gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "Partitions in fetch sessions.",
        lambda view: view.services.fetch_sessions.total_partitions,
        mbean="kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached",
    ),
    counter(
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
        "Fetch sessions that were evicted for new ones.",
        lambda view: view.services.fetch_sessions.evictions,
        mbean="kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec",
    ),
    gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that have failed.",
        lambda view: sum(not log_dir.is_online for log_dir in view.services.log_manager.log_dirs),
        mbean="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
    ),
    gauges(
        "kafka_log_logmanager_logdirectoryoffline",
        ("logDirectory",),
        "1 if the log directory has failed.",
        _log_dirs,
        mbean="kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=",
    ),
    summaries(
        "kafka_log_logflushstats_logflushrateandtimems",
        (),
        "Milliseconds that a flush of a log took, with its wait for a thread.",
        _flush_times,
        mbean="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    ),
    gauges(
        "odradek_info",
        ("version", "broker_id", "cluster_id"),
        "Always 1: version, id and cluster.",
        _info,
    ),
    summaries(
        "odradek_event_loop_delay_milliseconds",
        (),
        "How late the event loop ran a callback, of the last five minutes.",
        _loop_delay,
    ),
    gauge(
        "odradek_event_loop_delay_milliseconds_max",
        "The longest such delay since the start.",
        lambda view: view.sources.loop_delay.delay_ms.maximum,
    ),
    gauge("odradek_timer_tasks", "Tasks in the timing wheel.", lambda view: view.services.timer.size),
    gauge("odradek_worker_processes", "Worker processes.", _workers(0)),
    gauge("odradek_worker_processes_busy", "Worker processes that compute.", _workers(1)),
    gauge(
        "odradek_io_pool_pending",
        "Calls that wait for a thread of the I/O pool, or run in one.",
        lambda view: getattr(view.services.io_pool, "pending", 0),
    ),
    counter(
        "odradek_records_sent_from_files_bytes_total",
        "Bytes of records that the kernel sent from files (sendfile).",
        lambda view: view.sources.sent_bytes.sent_from_files,
    ),
    counter(
        "odradek_records_sent_copied_bytes_total",
        "Bytes of records that were read and written.",
        lambda view: view.sources.sent_bytes.copied,
    ),
    counters("odradek_connections_closed_total", ("reason",), "Connections that were closed.", _closed),
    gauges(
        "odradek_metrics_left_out",
        ("series",),
        "1 if there are more of them than odradek.metrics.max.* allows.",
        _left_out,
    ),
)
