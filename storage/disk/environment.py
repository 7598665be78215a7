"""The process resources that all logs of a broker share: file system, clock, timer, pools, descriptors, random numbers.

They are injected, so that tests can replace them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.storage.config.producer_config import ProducerStateManagerConfig
from odradek.storage.disk.descriptors import DescriptorLimits
from odradek.storage.disk.file_system import FileSystem, OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.disk.ports import InlineIoPool, InlineWorkerPool, IoPool, WorkerPool
from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.config.log_config import LogConfig
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


def no_jitter(limit: int) -> int:
    """The `random_below` of tests: always 0."""
    return 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Environment:
    """The resources of the logs of one broker."""

    clock: Clock
    timer: SystemTimer
    fs: FileSystem = field(default_factory=OsFileSystem)
    io_pool: IoPool = field(default_factory=InlineIoPool)
    workers: WorkerPool = field(default_factory=InlineWorkerPool)
    open_files: OpenFiles = field(default_factory=lambda: OpenFiles(descriptors=DescriptorLimits.of_process()))
    random_below: Callable[[int], int] = no_jitter
    """A random number in [0, limit); `random.randrange` in the broker."""
    new_uuid_hex: Callable[[], str]
    """32 hex digits for the names of directories to be deleted."""
    validate_all_records: bool = False
    """`odradek.validate.records=always`: decode the records of every batch that a client sends."""
    producers: ProducerStateManagerConfig = field(default_factory=ProducerStateManagerConfig)
    flush_times_ms: Histogram = field(default_factory=Histogram)
    """How long flushes of logs took, with their wait for a thread. Kafka: LogFlushStats."""
    max_decompressed_bytes: int = 32 * 1024 * 1024
    keep_partition_metadata_file: bool = True
    """Whether logs have topic ids: from inter.broker.protocol.version 2.8 on."""

    @classmethod
    def of_worker(cls, *, producer_id_expiration_ms: int = 86_400_000) -> Environment:
        """The resources in a worker process: disk and clock; its pools run all work in place."""
        import uuid

        from odradek.timer.clock import SystemClock
        from odradek.timer.system_timer import SystemTimer

        clock = SystemClock()
        return cls(
            clock=clock,
            timer=SystemTimer(clock),
            new_uuid_hex=lambda: uuid.uuid4().hex,
            producers=ProducerStateManagerConfig(producer_id_expiration_ms=producer_id_expiration_ms),
        )

    def segment_jitter_ms(self, config: LogConfig) -> int:
        limit = min(config.segment_jitter_ms, config.segment_ms)
        return self.random_below(limit) if limit else 0
