"""LeaderAndIsr and StopReplica requests of the controller: replicas become leaders or followers, or stop.

A request with an older controller epoch than the newest one is refused. A partition's state is applied only if its
leader epoch is newer than ours.

Kafka: ReplicaManager.becomeLeaderOrFollower, ReplicaManager.makeLeaders, ReplicaManager.makeFollowers,
ReplicaManager.stopReplicas, ReplicaManager.stopPartitions, ReplicaManager.maybeUpdateMetadataCache.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.partition.leadership import NO_LEADER_EPOCH
from odradek.controller.model.leader_and_isr import EPOCH_DURING_DELETE
from odradek.controller.model.topic_names import is_valid_topic_name
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.disk_space import LogDirFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.broker.partition.partition import Partition
    from odradek.broker.replica_manager.replica_moves import ReplicaMoves
    from odradek.broker.replication.replica_fetchers import Fetchers
    from odradek.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
    from odradek.protocol.messages.stop_replica import StopReplicaPartitionState
    from odradek.storage.manager.log_manager import LogManager

log = logging.getLogger(__name__)


class ControllerRequests:
    """The controller's requests to one broker. `controller_epoch` is the newest one of a request.

    `complete_delayed` is called with partitions whose waiting requests may complete, `leadership_began` when this
    broker leads partitions that it did not lead before, `handle_log_dir_failure` with partitions that have no log
    because their directory failed.
    """

    def __init__(
        self,
        partitions: HostedPartitions,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        *,
        broker_id: int,
        fetchers: Fetchers,
        moves: ReplicaMoves,
        complete_delayed: Callable[[TopicPartition], None],
        leadership_began: Callable[[], None],
        handle_log_dir_failure: Callable[[Sequence[TopicPartition]], None],
    ) -> None:
        self._partitions = partitions
        self._broker_id = broker_id
        self._fetchers = fetchers
        self._moves = moves
        self._complete_delayed = complete_delayed
        self._leadership_began = leadership_began
        self._handle_log_dir_failure = handle_log_dir_failure
        self._log_manager = log_manager
        self._metadata_cache = metadata_cache
        self.controller_epoch = 0
        self.replica_state_change_lock = asyncio.Lock()
        """Held by one LeaderAndIsr request at a time: preparing logs takes turns of the event loop."""

    def prepare_logs(
        self,
        controller_epoch: int,
        states: Sequence[tuple[str, bytes | None, LeaderAndIsrPartitionState]],
        done: Callable[[], None],
    ) -> None:
        """Make the files of the logs that `become_leader_or_follower` will create, without waiting for the disk; then
        call `done`. Call `discard_prepared_logs` after the states are applied.
        """
        new = [
            (topic_partition, state.is_new)
            for topic, _, state in states
            if self._needs_log(topic_partition := TopicPartition(topic, state.partition_index), state)
        ]
        if not new or controller_epoch < self.controller_epoch:
            done()
            return
        remaining = len(new)

        def prepared() -> None:
            nonlocal remaining
            remaining -= 1
            if not remaining:
                done()

        for topic_partition, is_new in new:
            self._log_manager.prepare_log(topic_partition, prepared, is_new=is_new)

    def _needs_log(self, topic_partition: TopicPartition, state: LeaderAndIsrPartitionState) -> bool:
        return (
            self._log_manager.get_log(topic_partition) is None
            and self._broker_id in state.replicas
            and topic_partition.partition >= 0
            and is_valid_topic_name(topic_partition.topic)
            and not self._partitions.is_offline(topic_partition)
        )

    def discard_prepared_logs(
        self, states: Sequence[tuple[str, bytes | None, LeaderAndIsrPartitionState]], done: Callable[[], None]
    ) -> None:
        """Remove what `prepare_logs` has made and the states did not need; then call `done`."""
        named = (TopicPartition(topic, state.partition_index) for topic, _, state in states)
        self._log_manager.discard_prepared_logs(named, done)

    def become_leader_or_follower(
        self,
        controller_epoch: int,
        states: Iterable[tuple[str, bytes | None, LeaderAndIsrPartitionState]],
        on_leadership_change: Callable[[Sequence[Partition], Sequence[Partition]], None],
    ) -> dict[TopicPartition, ErrorCode]:
        """Apply the states (topic, its id, state) that are newer than ours; one error per partition.

        Raises: KafkaError STALE_CONTROLLER_EPOCH.
        """
        self._check_controller_epoch(controller_epoch, "LeaderAndIsr")
        errors: dict[TopicPartition, ErrorCode] = {}
        leaders: list[Partition] = []
        followers: list[Partition] = []
        for topic, topic_id, state in states:
            topic_partition = TopicPartition(topic, state.partition_index)
            try:
                errors[topic_partition] = self._apply_state(topic_partition, topic_id, state, leaders, followers)
            except KafkaError as error:
                log.error("LeaderAndIsr for %s failed: %s", topic_partition, error.message)
                errors[topic_partition] = error.code
                self._close_without_log(topic_partition, error)
        self._fetchers.add(followers)
        if leaders:
            self._leadership_began()
        on_leadership_change(leaders, followers)
        return errors

    def _apply_state(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        state: LeaderAndIsrPartitionState,
        leaders: list[Partition],
        followers: list[Partition],
    ) -> ErrorCode:
        if self._partitions.is_offline(topic_partition):
            return ErrorCode.KAFKA_STORAGE_ERROR
        hosted = self._partitions.hosted(topic_partition)
        if hosted is None:
            if not is_valid_topic_name(topic_partition.topic) or topic_partition.partition < 0:
                return ErrorCode.INVALID_TOPIC_EXCEPTION  # it would become the name of a directory
            if self._broker_id not in state.replicas:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            hosted = self._partitions.create(topic_partition)
        log_topic_id = hosted.topic_id
        if topic_id is not None and log_topic_id is not None and topic_id != log_topic_id:
            log.error("Topic id in memory does not match the one received for partition %s", topic_partition)
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if state.leader_epoch > hosted.leader_epoch:
            if self._broker_id not in state.replicas:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if state.leader == self._broker_id:
                self._fetchers.remove([topic_partition])
                if hosted.make_leader(state, topic_id):
                    leaders.append(hosted)
            elif not self._metadata_cache.is_alive(state.leader):
                # Its leadership stays as it was, and nothing is fetched. It gets a log, so that its high watermark is
                # in the checkpoint.
                log.error(
                    "%s does not follow broker %d, which is not alive; waiting for the next LeaderAndIsr",
                    topic_partition,
                    state.leader,
                )
                hosted.create_log_if_not_exists(state, topic_id)
            elif hosted.make_follower(state, topic_id):
                followers.append(hosted)
            self._moves.resume(hosted)
            # A new epoch ends requests that waited under the old one, and the high watermark may have moved.
            self._complete_delayed(topic_partition)
            return ErrorCode.NONE
        if state.leader_epoch == hosted.leader_epoch and (topic_id is None) != (log_topic_id is None):
            return self._id_came_or_went(hosted, topic_id, is_follower=state.leader != self._broker_id)
        return ErrorCode.STALE_CONTROLLER_EPOCH

    def _id_came_or_went(self, hosted: Partition, topic_id: bytes | None, *, is_follower: bool) -> ErrorCode:
        """Controllers before 2.8 send no topic ids. One may follow, or be followed by, a controller that does."""
        if topic_id is None and not is_follower:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        hosted.news.announce()
        hosted.fetch_topic_id = topic_id or ZERO_UUID
        if topic_id is not None and hosted.log is not None:
            hosted.log.assign_topic_id(topic_id)
        return ErrorCode.NONE

    def _close_without_log(self, topic_partition: TopicPartition, error: KafkaError) -> None:
        """Stop hosting a partition that could not get a log, or take it offline if a failed directory may have one."""
        hosted = self._partitions.hosted(topic_partition)
        if hosted is not None and hosted.log is None:
            if isinstance(error, LogDirFullError):
                self._partitions.forget(topic_partition)
            elif error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                self._handle_log_dir_failure([topic_partition])

    def stop_replicas(
        self,
        controller_epoch: int,
        states: Mapping[TopicPartition, StopReplicaPartitionState],
        on_stopped: Callable[[TopicPartition, bool], None],
    ) -> Generator[None, None, dict[TopicPartition, ErrorCode]]:
        """Stop these replicas, one a step, and delete those that the state says; call `on_stopped(partition, deleted)`
        for each. The errors may change until `LogManager.when_durable` calls back.

        Raises: KafkaError STALE_CONTROLLER_EPOCH, also when a request with a newer epoch comes in between.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        self._check_controller_epoch(controller_epoch, "StopReplica")
        for topic_partition, state in states.items():
            yield
            self._check_controller_epoch(controller_epoch, "StopReplica")
            if self._partitions.is_offline(topic_partition):
                errors[topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            hosted = self._partitions.hosted(topic_partition)
            if hosted is not None and not (
                state.leader_epoch in (EPOCH_DURING_DELETE, NO_LEADER_EPOCH)
                or state.leader_epoch >= hosted.leader_epoch
            ):
                errors[topic_partition] = ErrorCode.FENCED_LEADER_EPOCH
                continue
            failed = partial(errors.__setitem__, topic_partition, ErrorCode.KAFKA_STORAGE_ERROR)
            errors[topic_partition] = ErrorCode.NONE
            if self._stop(topic_partition, hosted, state.delete_partition, failed):
                on_stopped(topic_partition, state.delete_partition)
        return errors

    def _stop(
        self, topic_partition: TopicPartition, hosted: Partition | None, delete: bool, failed: Callable[[], None]
    ) -> bool:
        """Whether it is stopped. `failed` is called, now or later, if its logs cannot be deleted."""
        self._fetchers.remove([topic_partition])
        self._moves.stop(topic_partition)
        if delete and hosted is not None:
            self._partitions.forget(topic_partition)
            hosted.close()
        # Requests that wait for this leader are answered now, instead of at their time-out.
        self._complete_delayed(topic_partition)
        if delete:
            try:
                self._log_manager.async_delete(topic_partition, on_failure=failed)
                self._log_manager.async_delete(topic_partition, is_future=True, on_failure=failed)
            except KafkaError:  # KAFKA_STORAGE_ERROR
                failed()
                return False
        return True

    def check_metadata_epoch(self, controller_epoch: int) -> None:
        """The epoch check of an UpdateMetadata. Raises: KafkaError STALE_CONTROLLER_EPOCH."""
        self._check_controller_epoch(controller_epoch, "UpdateMetadata")

    def _check_controller_epoch(self, controller_epoch: int, what: str) -> None:
        if controller_epoch < self.controller_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"Ignoring {what} with old controller epoch {controller_epoch}; the latest known is "
                f"{self.controller_epoch}",
            )
        self.controller_epoch = controller_epoch
