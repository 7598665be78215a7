"""Metrics of the compaction of logs.

Kafka: LogCleaner, LogCleanerManager, Throttler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from odradek.broker.metrics.family import Sample, gauge, gauges
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View


def _uncleanable(view: View) -> Iterator[Sample]:
    counts = Counter(path for path, _ in view.services.log_manager.cleaner.uncleanable)
    for log_dir in view.services.log_manager.log_dirs:
        yield labelled(logDirectory=log_dir.path), counts[log_dir.path]


def _uncleanable_bytes(view: View) -> Iterator[Sample | None]:
    cleaner = view.services.log_manager.cleaner
    found = list(cleaner.uncleanable)
    for log_dir in view.services.log_manager.log_dirs:
        total = 0
        for path, topic_partition in found:
            if path == log_dir.path:
                total += cleaner.uncleanable_bytes(topic_partition)
                yield None
        yield labelled(logDirectory=log_dir.path), total


def _recopied(view: View) -> float:
    stats = view.services.log_manager.cleaner.last_stats
    return 100 * stats.bytes_written // stats.bytes_read if stats.bytes_read else 0


CLEANER_FAMILIES: Final = (
    gauges(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        ("logDirectory",),
        "Partitions whose compaction failed.",
        _uncleanable,
        mbean="kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,logDirectory=",
    ),
    gauges(
        "kafka_log_logcleanermanager_uncleanable_bytes",
        ("logDirectory",),
        "Bytes to compact of these partitions.",
        _uncleanable_bytes,
        mbean="kafka.log:type=LogCleanerManager,name=uncleanable-bytes,logDirectory=",
    ),
    gauge(
        "kafka_log_logcleaner_max_compaction_delay_secs",
        "Seconds by which a log had exceeded max.compaction.lag.ms, the most of the last round that found a log to "
        "compact.",
        lambda view: view.services.log_manager.cleaner.longest_delay_ms // 1000,
        mbean="kafka.log:type=LogCleaner,name=max-compaction-delay-secs",
    ),
    gauge(
        "kafka_utils_throttler_cleaner_io_count",
        "Bytes that compactions have read and written, which log.cleaner.io.max.bytes.per.second limits; counted at "
        "the end of each.",
        lambda view: view.services.log_manager.cleaner.io_bytes,
        mbean="kafka.utils:type=Throttler,name=cleaner-io",
    ),
    gauge(
        "kafka_log_logcleaner_max_buffer_utilization_percent",
        "How full the key buffer of the last compaction was, 0 to 100.",
        lambda view: int(100 * view.services.log_manager.cleaner.last_stats.map_utilization),
        mbean="kafka.log:type=LogCleaner,name=max-buffer-utilization-percent",
    ),
    gauge(
        "kafka_log_logcleaner_cleaner_recopy_percent",
        "The share of bytes that the last compaction kept, 0 to 100.",
        _recopied,
        mbean="kafka.log:type=LogCleaner,name=cleaner-recopy-percent",
    ),
    gauge(
        "kafka_log_logcleaner_max_clean_time_secs",
        "Seconds that the last compaction took.",
        lambda view: view.services.log_manager.cleaner.last_stats.elapsed_ms // 1000,
        mbean="kafka.log:type=LogCleaner,name=max-clean-time-secs",
    ),
    gauge(
        "kafka_log_logcleanermanager_max_dirty_percent",
        "The share of bytes to compact of the dirtiest log, as the last round found it, 0 to 100.",
        lambda view: int(100 * view.services.log_manager.cleaner.dirtiest_ratio),
        mbean="kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    ),
    gauge(
        "kafka_log_logcleanermanager_time_since_last_run_ms",
        "Milliseconds since the last round in which the cleaner looked for logs to compact.",
        lambda view: view.services.log_manager.cleaner.since_last_round_ms,
        mbean="kafka.log:type=LogCleanerManager,name=time-since-last-run-ms",
    ),
)
