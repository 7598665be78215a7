"""Begins and ends moves of replicas between log directories of this broker (AlterReplicaLogDirs).

    requested directory                         effect
    any, for a replica that is not hosted here  its log will be created there; the answer is REPLICA_NOT_AVAILABLE
    the one of its log                          a move in progress is cancelled
    the one it is moving to                     none
    another one                                 a move in progress is cancelled, and a new one begins

A move is a future log in the other directory, which `replication.alter_log_dirs` fills and swaps in. A move is given up
when the partition is stopped, or when the directory of either log fails; the log stays in use when only the future
log's directory fails. Moves of future logs that are found at start continue with the first LeaderAndIsr of their
partition.

Kafka: ReplicaManager.alterReplicaLogDirs, ReplicaManager.maybeAddLogDirFetchers, Partition.maybeCreateFutureReplica,
Partition.futureReplicaDirChanged, Partition.removeFutureLocalReplica.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.broker.replication.alter_log_dirs import ReplicaAlterLogDirsManager
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage import log_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.broker.partition.partition import Partition
    from odradek.broker.replication.alter_log_dirs import MoveSettings
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.manager.log_manager import LogManager

log = logging.getLogger(__name__)


class ReplicaMoves:
    """The moves of one broker. `complete_delayed` is called with partitions whose offsets may have moved."""

    def __init__(
        self,
        partitions: HostedPartitions,
        log_manager: LogManager,
        settings: MoveSettings,
        complete_delayed: Callable[[TopicPartition], None],
    ) -> None:
        self._partitions = partitions
        self._complete_delayed = complete_delayed
        self._log_manager = log_manager
        self._mover = ReplicaAlterLogDirsManager(
            log_manager,
            settings,
            on_progress=complete_delayed,
            on_moved=complete_delayed,
        )

    @property
    def failed(self) -> Collection[TopicPartition]:
        """Partitions whose moves were given up."""
        return self._mover.failed

    def lags(self) -> Iterator[int]:
        """How many records each future log lacks."""
        return self._mover.lags()

    @property
    def bytes_per_second(self) -> float:
        """What all moves copied."""
        return self._mover.bytes_per_second

    def prepare(self, topic_partition: TopicPartition, path: str, done: Callable[[], None]) -> None:
        """Make the files of the future log that `alter` will create, without waiting for the disk; then call `done`."""
        hosted = self._partitions.hosted(topic_partition)
        try:
            self._check_target(topic_partition, path)
        except KafkaError:
            hosted = None
        if hosted is None or hosted.log is None or hosted.log.log_dir.path == path:
            done()
            return
        self._log_manager.maybe_update_preferred_dir(topic_partition, path)
        self._log_manager.prepare_log(topic_partition, done, is_future=True)

    def discard_prepared(self, topic_partition: TopicPartition, done: Callable[[], None]) -> None:
        """Remove what `prepare` has made and `alter` did not need; then call `done`."""
        self._log_manager.discard_prepared_logs([topic_partition], done, is_future=True)

    def alter(self, topic_partition: TopicPartition, path: str) -> ErrorCode:
        """Begin to move the replica to the log directory `path` (absolute); NONE also when it is there already."""
        try:
            self._alter(topic_partition, path)
        except KafkaError as error:
            log.warning("Unable to alter log dirs for %s: %s", topic_partition, error.message)
            # Clients of this API know the code by its old name.
            is_elsewhere = error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.REPLICA_NOT_AVAILABLE if is_elsewhere else error.code
        return ErrorCode.NONE

    def _check_target(self, topic_partition: TopicPartition, path: str) -> None:
        if len(log_files.future_dir_name(topic_partition, "0" * 32)) > log_files.NAME_MAX:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        if not self._log_manager.is_log_dir_online(path):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")

    def _alter(self, topic_partition: TopicPartition, path: str) -> None:
        self._check_target(topic_partition, path)
        if self._partitions.is_offline(topic_partition):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {topic_partition} is offline")
        hosted = self._partitions.hosted(topic_partition)
        if hosted is not None and hosted.future_log is not None and hosted.future_log.log_dir.path != path:
            self._cancel(hosted)
        self._log_manager.maybe_update_preferred_dir(topic_partition, path)
        partition = self._partitions.partition(topic_partition)
        self._begin(partition, path)

    def _begin(self, partition: Partition, path: str) -> None:
        """Create the future log in the directory and start to fill it, unless the log itself is there."""
        topic_partition, current = partition.topic_partition, partition.log
        if current is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Log for partition {topic_partition} is not available")
        if current.log_dir.path == path:
            return
        if partition.future_log is None:
            future = self._log_manager.get_or_create_log(topic_partition, current.topic_id, is_future=True)
            future.update_high_watermark(self._log_manager.checkpointed_high_watermark(future))
            if not future.log_dir.is_online:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
            partition.future_log = future
        self._mover.add(partition)

    def _cancel(self, partition: Partition) -> None:
        self._mover.remove(partition.topic_partition)
        partition.future_log = None
        self._log_manager.async_delete(partition.topic_partition, is_future=True)
        self._complete_delayed(partition.topic_partition)

    def resume(self, partition: Partition) -> None:
        """Continue to fill the future log, if there is one, under the partition's new leader epoch."""
        future = self._log_manager.get_log(partition.topic_partition, is_future=True)
        if future is None or partition.log is None:
            return
        try:
            self._begin(partition, future.log_dir.path)
        except KafkaError as error:  # for example the future log of a deleted topic of the same name
            log.error(
                "Cannot resume the move of %s to another log directory: %s", partition.topic_partition, error.message
            )

    def stop(self, topic_partition: TopicPartition) -> None:
        """Stop to fill the future log: the partition is stopped, and its logs stay or are deleted."""
        self._mover.remove(topic_partition)

    def mark_for_truncation(self, topic_partition: TopicPartition, offset: int) -> None:
        """Truncate the future log to `offset`, as a follower's log was."""
        self._mover.mark_for_truncation(topic_partition, offset)

    def handle_log_dir_failure(self, topic_partitions: Sequence[TopicPartition]) -> None:
        """End moves of these partitions, whose log directory has failed, and moves into the failed directory; the logs
        of the latter stay in use.
        """
        for topic_partition in topic_partitions:
            self._mover.remove(topic_partition)
        for partition in self._partitions.online_partitions():
            future = partition.future_log
            if future is not None and not future.log_dir.is_online:
                partition.future_log = None
                self._mover.remove(partition.topic_partition)
                self._complete_delayed(partition.topic_partition)

    def shutdown(self) -> None:
        self._mover.shutdown()
