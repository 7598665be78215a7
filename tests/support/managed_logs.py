"""A log manager with the disk and the clock it stands on, for tests."""

from __future__ import annotations

from pathlib import Path

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.file_system import FileSystem
from odradek.storage.log_manager import LogManager, LogManagerSettings
from tests.support.logs import DeferredIoPool, Disk


class Broker:
    """A log manager with its clock; stopped at the end of the test so that the lock is released."""

    def __init__(
        self, *paths: Path, io_pool: DeferredIoPool | None = None, fs: FileSystem | None = None, **settings: int
    ) -> None:
        self.disk = Disk(paths[0], io_pool=io_pool, fs=fs)
        self.manager = LogManager(
            [str(path) for path in paths], {}, self.disk.environment, LogManagerSettings(**settings)
        )

    def start(self, overrides: dict[str, dict[str, str]] | None = None) -> LogManager:
        self.manager.startup(overrides)
        return self.manager

    def kill(self) -> None:
        """What the kernel does for a killed process."""
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()


def create(manager: LogManager, *partitions: TopicPartition) -> None:
    for partition in partitions:
        manager.get_or_create_log(partition, b"\x07" * 16, is_new=True)
