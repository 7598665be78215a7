"""Creates logs: chooses the directory, and takes over what `log_preparation` has prepared.

Without a prepared log, the files are made here, and the caller waits for the disk.

Kafka: LogManager.getOrCreateLog.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NoReturn

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage import log_files
from odradek.storage.disk.disk_space import LogDirFullError, is_no_space
from odradek.storage.manager.log_loading import open_log
from odradek.storage.manager.log_placement import LogPlacement
from odradek.storage.manager.log_preparation import LogPreparations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.topic_configs import TopicConfigs
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_deletions import LogDeletions
    from odradek.storage.manager.log_preparation import PreparedLog

logger = logging.getLogger(__name__)


class LogCreation:
    """Creates the logs of one log manager, which registers them. `all_logs`: including future logs."""

    __slots__ = ("_all_logs", "_configs", "_deletions", "_environment", "_log_dirs", "placement", "preparations")

    def __init__(
        self,
        log_dirs: Sequence[LogDir],
        configs: TopicConfigs,
        environment: Environment,
        deletions: LogDeletions,
        all_logs: Callable[[], Iterable[UnifiedLog]],
    ) -> None:
        self._log_dirs = log_dirs
        self._configs = configs
        self._environment = environment
        self._deletions = deletions
        self._all_logs = all_logs
        self.placement = LogPlacement(log_dirs)
        self.preparations = LogPreparations(environment)

    def prepare(
        self, topic_partition: TopicPartition, done: Callable[[], None], *, is_new: bool, is_future: bool
    ) -> None:
        """See `LogManager.prepare_log`."""
        try:
            self._require_no_offline_dir(topic_partition, is_new=is_new)
            log_dir = self.placement.dir_for(topic_partition, self._used_dirs())
        except KafkaError:
            done()
            return
        path = log_dir.file(self._name(topic_partition, is_future=is_future))
        config = self._configs.of(topic_partition.topic)

        def free() -> None:
            self.preparations.prepare((topic_partition, is_future), path, log_dir, config, done)

        self._deletions.when_free(path, free)

    def create(
        self, topic_partition: TopicPartition, topic_id: bytes | None, *, is_new: bool, is_future: bool
    ) -> UnifiedLog:
        """See `LogManager.get_or_create_log`."""
        self._require_no_offline_dir(topic_partition, is_new=is_new)
        prepared = self._take_prepared(topic_partition, is_future=is_future)
        if prepared is not None:
            path, log_dir, created_fd, is_there = prepared.path, prepared.log_dir, prepared.fd, False
        else:
            log_dir, created_fd = self.placement.dir_for(topic_partition, self._used_dirs()), None
            path = log_dir.file(self._name(topic_partition, is_future=is_future))
            self._deletions.free(path)
            is_there = os.path.exists(path)
        config = self._configs.of(topic_partition.topic)
        try:
            log = open_log(
                path, topic_partition, config, log_dir, self._environment, topic_id=topic_id, created_fd=created_fd
            )
        except OSError as error:
            self._refuse(path, log_dir, error, is_there=is_there)
        self.placement.on_created(topic_partition)
        logger.info("Created log for partition %s in %s with properties %s", topic_partition, path, config.overrides)
        return log

    def _require_no_offline_dir(self, topic_partition: TopicPartition, *, is_new: bool) -> None:
        offline = [log_dir.path for log_dir in self._log_dirs if not log_dir.is_online]
        if offline and not is_new:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Can not create log for {topic_partition} because log directories {offline} are offline",
            )

    def _name(self, topic_partition: TopicPartition, *, is_future: bool) -> str:
        if is_future:
            return log_files.future_dir_name(topic_partition, self._environment.new_uuid_hex())
        return log_files.log_dir_name(topic_partition)

    def _take_prepared(self, topic_partition: TopicPartition, *, is_future: bool) -> PreparedLog | None:
        prepared = self.preparations.take((topic_partition, is_future))
        if prepared is None or self.placement.allows(topic_partition, prepared.log_dir):
            return prepared
        self.preparations.remove([prepared])
        return None

    def _used_dirs(self) -> Iterator[LogDir]:
        """The log directory of each log."""
        for log in self._all_logs():
            yield log.log_dir
        yield from self.preparations.log_dirs

    def _refuse(self, path: str, log_dir: LogDir, error: OSError, *, is_there: bool) -> NoReturn:
        """Raise after a log that could not be created. A full directory stays online, any other error fails it."""
        if is_no_space(error) and not is_there:
            try:
                self._environment.fs.remove_tree(path)
            except OSError as second:
                error = second
            else:
                log_dir.space.ran_out(error)
                raise LogDirFullError(log_dir.path) from error
        message = f"Error while creating the log {path}"
        log_dir.fail(message, error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
