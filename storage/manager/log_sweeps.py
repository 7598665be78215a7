"""The recurring work over all logs of a broker.

    every                                          does
    log.flush.offset.checkpoint.interval.ms        writes recovery points
    log.flush.start.offset.checkpoint.interval.ms  writes log start offsets
    log.flush.scheduler.interval.ms                flushes logs whose flush.ms has passed
    log.retention.check.interval.ms                applies retention
    producer.id.expiration.check.interval.ms       removes expired producers
    CHECK_EVERY_MS                                 checks the free space of the disks

A sweep visits a few logs per callback (`log_visits`).

Invariant: nothing begins after `stop`.

Kafka: LogManager.startupWithConfigOverrides, LogManager.cleanupLogs, LogManager.flushDirtyLogs.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import KafkaError
from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.disk.disk_space import CHECK_EVERY_MS
from odradek.storage.log.log_visits import LogVisits
from odradek.timer.periodic import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.environment import Environment
    from odradek.storage.log.unified_log import UnifiedLog

_NEVER_MS: Final = 2**62

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LogManagerSettings:
    """The broker settings of the start and the recurring work, with Kafka's defaults."""

    recovery_threads_per_data_dir: int = 1

    initial_task_delay_ms: int = 30_000
    flush_check_ms: int = 2**63 - 1
    recovery_point_checkpoint_ms: int = 60_000
    log_start_offset_checkpoint_ms: int = 60_000
    retention_check_ms: int = 300_000
    producer_id_expiration_check_ms: int = 600_000
    cleaner: CleanerConfig = field(default_factory=CleanerConfig)


class LogSweeps:
    """The recurring work of one log manager."""

    __slots__ = ("_all_logs", "_environment", "_settings", "_tasks", "visits")

    def __init__(
        self, environment: Environment, settings: LogManagerSettings, all_logs: Callable[[], list[UnifiedLog]]
    ) -> None:
        self._environment = environment
        self._settings = settings
        self._all_logs = all_logs
        self._tasks: list[PeriodicTask] = []
        self.visits = LogVisits(environment.timer)

    def start(
        self,
        checkpoint_recovery_points: Callable[[], object],
        checkpoint_log_start_offsets: Callable[[], object],
        check_space: Callable[[], object],
    ) -> None:
        settings = self._settings
        self._every("log-retention", settings.retention_check_ms, lambda: self._sweep(delete_old_segments_of))
        self._every("recovery-point-checkpoint", settings.recovery_point_checkpoint_ms, checkpoint_recovery_points)
        self._every(
            "log-start-offset-checkpoint", settings.log_start_offset_checkpoint_ms, checkpoint_log_start_offsets
        )
        self._every(
            "producer-id-expiration",
            settings.producer_id_expiration_check_ms,
            lambda: self._sweep(self._remove_expired_producers_of),
        )
        if settings.flush_check_ms < _NEVER_MS:
            self._every("log-flusher", settings.flush_check_ms, lambda: self._sweep(self._flush_if_due))
        self._every("disk-space", CHECK_EVERY_MS, check_space, initial_delay_ms=CHECK_EVERY_MS)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self.visits.stop()

    def _every(
        self, name: str, interval_ms: int, work: Callable[[], object], *, initial_delay_ms: int | None = None
    ) -> None:
        task = PeriodicTask(self._environment.timer, name, interval_ms, work)
        task.start(
            initial_delay_ms=self._settings.initial_task_delay_ms if initial_delay_ms is None else initial_delay_ms
        )
        self._tasks.append(task)

    def _sweep(self, work: Callable[[UnifiedLog], object]) -> None:
        self.visits.visit(self._all_logs(), work)

    def _flush_if_due(self, log: UnifiedLog) -> None:
        """Flush a log whose oldest unflushed record has waited for flush.ms."""
        now_ms = self._environment.clock.time_ms()
        if log.unflushed_messages and now_ms - log.last_flushed_ms >= log.config.flush_ms:
            log.flush()

    def _remove_expired_producers_of(self, log: UnifiedLog) -> None:
        log.remove_expired_producers(self._environment.clock.time_ms())


def delete_old_segments_of(log: UnifiedLog) -> int:
    """Apply retention; returns the number of deleted segments. For compacted logs the cleaner applies it instead."""
    if log.config.compact:
        return 0
    try:
        return log.delete_old_segments()
    except KafkaError as error:
        logger.error("Retention of %s stopped: %s", log.topic_partition, error)
        return 0
