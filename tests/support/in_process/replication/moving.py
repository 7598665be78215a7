"""A partition that moves between the directories of one broker, for tests of moves."""

from __future__ import annotations

import os
from pathlib import Path

from odradek.broker.partition.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.faulty_disk import FaultyFileSystem
from tests.support.disks.logs import DeferredIoPool, batch, read_all, values_of
from tests.support.in_process.replication.replicas import TP, Replicas

STEPS_MAX = 2_000


class Moving:
    """Replicas over three directories; partition `t-0` begins in the first."""

    def __init__(
        self,
        path: Path,
        overrides: dict[str, str] | None = None,
        *,
        pool: DeferredIoPool | None = None,
        fs: FaultyFileSystem | None = None,
        threads: int = 1,
        fetch_max_bytes: int = 1024 * 1024,
    ) -> None:
        self.dirs = [str(path / str(number)) for number in range(3)]
        self.pool = pool
        self.replicas = Replicas(
            path / "0",
            overrides,
            log_dirs=[path / "1", path / "2"],
            io_pool=pool,
            fs=fs,
            move_threads=threads,
            fetch_max_bytes=fetch_max_bytes,
        )
        self.log_manager = self.replicas.log_manager

    def lead(self, tp: TopicPartition = TP, *, epoch: int = 0, directory: int = 0) -> None:
        """Become the leader; a new log is made in the directory."""
        if self.log_manager.get_log(tp) is None:
            self.log_manager.maybe_update_preferred_dir(tp, self.dirs[directory])
        assert self.replicas.lead(tp, epoch=epoch, partition_epoch=epoch) == ErrorCode.NONE

    def append(self, *values: bytes, tp: TopicPartition = TP) -> None:
        """A batch of each value."""
        for value in values:
            self.replicas.append(batch(value), tp)

    def alter(self, directory: int | str, tp: TopicPartition = TP) -> ErrorCode:
        path = self.dirs[directory] if isinstance(directory, int) else directory
        return self.replicas.manager.moves.alter(tp, path)

    def partition(self, tp: TopicPartition = TP) -> Partition:
        return self.replicas.manager.partition(tp)

    def log(self, tp: TopicPartition = TP) -> UnifiedLog:
        log = self.partition(tp).log
        assert log is not None
        return log

    def future(self, tp: TopicPartition = TP) -> UnifiedLog:
        future = self.partition(tp).future_log
        assert future is not None
        return future

    def where(self, tp: TopicPartition = TP) -> int:
        """The number of the directory the log is in."""
        return self.dirs.index(self.log(tp).log_dir.path)

    def values(self, tp: TopicPartition = TP) -> list[bytes | None]:
        return values_of(read_all(self.log(tp)))

    def settle(self) -> None:
        """Let time pass and do I/O until every move is over."""
        for _ in range(STEPS_MAX):
            self.replicas.advance(1)
            if self.pool is not None:
                self.pool.run_all()
            if not any(partition.future_log for partition in self.replicas.manager.online_partitions()):
                return
        raise AssertionError("the moves do not end")

    def names(self, directory: int) -> list[str]:
        """The suffixes of the partition's directories: '' for one in use."""
        found = (name for name in os.listdir(self.dirs[directory]) if name.startswith("t-0"))
        return sorted(name[len("t-0") :].rpartition("-")[2] for name in found)

    def restart(self) -> Moving:
        """Start again on the files that a kill leaves."""
        for log_dir in self.log_manager.log_dirs:
            log_dir.unlock()
        return Moving(Path(self.dirs[0]).parent)
