"""A log manager with the disk and the clock it stands on, for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.disk.file_system import FileSystem
from odradek.storage.disk.ports import InlineWorkerPool, WorkerPool
from odradek.storage.manager.log_manager import LogManager, LogManagerSettings
from tests.support.disks.logs import DeferredIoPool, Disk


class Broker:
    """A log manager with its clock; stopped at the end of the test so that the lock is released."""

    def __init__(
        self,
        *paths: Path,
        io_pool: DeferredIoPool | None = None,
        workers: WorkerPool | None = None,
        fs: FileSystem | None = None,
        **settings: int | CleanerConfig,
    ) -> None:
        self.disk = Disk(paths[0], io_pool=io_pool, workers=workers, fs=fs)
        self.manager = LogManager(
            [str(path) for path in paths], {}, self.disk.environment, LogManagerSettings(**settings)
        )

    def start(self, overrides: dict[str, dict[str, str]] | None = None) -> LogManager:
        self.manager.startup(overrides)
        return self.manager

    def kill(self) -> None:
        """Release the lock, as the kernel does for a killed process."""
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()


def create(manager: LogManager, *partitions: TopicPartition) -> None:
    for partition in partitions:
        manager.get_or_create_log(partition, b"\x07" * 16, is_new=True)


class DeferredWorkers:
    """A WorkerPool whose jobs are done when the test calls for it, and can be cancelled before."""

    def __init__(self) -> None:
        self.jobs: list[DeferredJob] = []

    def submit(
        self,
        work: Callable[[Any, Callable[[object], None]], Any],
        argument: Any,
        done: Callable[[Any], None],
        on_report: Callable[[object], None] | None = None,
    ) -> DeferredJob:
        job = DeferredJob(work, argument, done, on_report)
        self.jobs.append(job)
        return job


class DeferredJob:
    def __init__(
        self,
        work: Callable[[Any, Callable[[object], None]], Any],
        argument: Any,
        done: Callable[[Any], None],
        on_report: Callable[[object], None] | None,
    ) -> None:
        self.work, self.argument, self.done, self.on_report = work, argument, done, on_report
        self.is_cancelled = False

    def run(self) -> None:
        InlineWorkerPool().submit(self.work, self.argument, self.done, self.on_report)

    def cancel(self) -> None:
        self.is_cancelled = True
