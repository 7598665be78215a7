"""Creates logs: chooses the directory, and takes over what `log_preparation` has prepared.

Without a prepared log, the files are made here, and the caller waits for the disk. A directory in which that fails goes
offline, or is full, and the log is created in the next one.

Kafka: LogManager.getOrCreateLog.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage import log_files
from odradek.storage.disk.descriptors import is_out_of_descriptors
from odradek.storage.disk.disk_space import LogDirFullError, is_no_space
from odradek.storage.disk.file_system import may_exist
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


class _Place(NamedTuple):
    """Where a log may be created. `created_fd`: see `load_log`. `is_there`: the directory exists, and its log is
    loaded.
    """

    path: str
    log_dir: LogDir
    created_fd: int | None
    is_there: bool


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
            log_dir = self.placement.dirs_for(topic_partition, self._used_dirs())[0]
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
        refused: KafkaError | None = None
        for place in self._places(topic_partition, is_future=is_future):
            try:
                return self._create_at(place, topic_partition, topic_id)
            except OSError as error:
                is_gone = not place.is_there and self._remove(place.path)
                refused = self._failure(place, error, is_gone=is_gone)
                # Another directory would need descriptors, too. And no two directories may have a log of the partition:
                # the next start would be refused.
                if not is_gone or is_out_of_descriptors(error):
                    raise refused from error
        assert refused is not None, "there is at least one place"
        raise refused

    def _create_at(self, place: _Place, topic_partition: TopicPartition, topic_id: bytes | None) -> UnifiedLog:
        """Raises OSError."""
        path, log_dir, created_fd, _ = place
        config = self._configs.of(topic_partition.topic)
        log = open_log(
            path, topic_partition, config, log_dir, self._environment, topic_id=topic_id, created_fd=created_fd
        )
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

    def _places(self, topic_partition: TopicPartition, *, is_future: bool) -> Iterator[_Place]:
        """The prepared log, if there is one; then each directory in turn.

        Raises: the errors of `dirs_for`; KafkaError KAFKA_STORAGE_ERROR if the prepared log can neither be used nor
        removed.
        """
        prepared = self.preparations.take((topic_partition, is_future))
        if prepared is not None:
            is_usable = prepared.fd is not None and prepared.log_dir.is_online
            if is_usable and self.placement.allows(topic_partition, prepared.log_dir):
                yield _Place(prepared.path, prepared.log_dir, prepared.fd, is_there=False)
            else:
                self._remove_prepared(prepared)
        for log_dir in self.placement.dirs_for(topic_partition, self._used_dirs()):
            path = log_dir.file(self._name(topic_partition, is_future=is_future))
            self._deletions.free(path)
            yield _Place(path, log_dir, None, is_there=may_exist(path))

    def _used_dirs(self) -> Iterator[LogDir]:
        """The log directory of each log."""
        for log in self._all_logs():
            yield log.log_dir
        yield from self.preparations.log_dirs

    def _remove_prepared(self, prepared: PreparedLog) -> None:
        """Remove a prepared log before another directory gets a log of the partition. Waits for the disk."""
        try:
            self.preparations.remove(prepared)
        except OSError as error:
            message = f"Error while removing {prepared.path}"
            prepared.log_dir.fail(message, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

    def _remove(self, path: str) -> bool:
        """Remove what a failed creation has made; returns whether nothing is left."""
        try:
            self._environment.fs.remove_tree(path)
        except OSError:
            return False
        return True

    def _failure(self, place: _Place, error: OSError, *, is_gone: bool) -> KafkaError:
        """Handle the error of a creation; returns what to raise. A full directory stays online if nothing is left of
        the log; any other error fails it.
        """
        if is_no_space(error) and is_gone:
            place.log_dir.space.ran_out(error)
            return LogDirFullError(place.log_dir.path)
        message = f"Error while creating the log {place.path}"
        place.log_dir.fail(message, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
