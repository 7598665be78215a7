"""One hosted partition: leader or follower, its epochs, and its log.

Everything here is synchronous: nothing is awaited between the check of leadership and the write into the log, so one
append or one change of leadership is atomic and needs no lock.

Epochs: a LeaderAndIsr state is applied only when its partition epoch is not behind ours. Reads that name a leader epoch
must name ours, else they are FENCED (theirs is older) or UNKNOWN (theirs is newer). The followers of a leader are in
`in_sync_replicas.py`.

Kafka: Partition, Partition.makeLeader, Partition.makeFollower, Partition.appendRecordsToLeader, Partition.fetchRecords,
Partition.deleteRecordsOnLeader, Partition.localLogWithEpochOrThrow, Partition.maybeReplaceCurrentWithFutureReplica,
LogReadInfo.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.partition.in_sync_replicas import InSyncReplicas
from odradek.broker.partition.leadership import Leadership
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_to_text
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.storage.offsets import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.partition.leadership import PartitionEnvironment
    from odradek.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.append_info import AppendOrigin, LogAppendInfo
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.segment.fetch_data import FetchDataInfo, FetchIsolation
    from odradek.storage.validation.validation_job import FinishedValidation, ValidationJob

state_change_log = logging.getLogger("odradek.state.change")


class LogReadInfo(NamedTuple):
    """The result of one read; the offsets are those *before* the read.

    `diverging_epoch`: (epoch, end offset) at which the reader's log diverges from ours; then `fetched` is None.
    """

    fetched: FetchDataInfo | None
    diverging_epoch: tuple[int, int] | None
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int


class Partition(Leadership):
    """A hosted partition. `future_log` is the copy that a move to another log directory fills."""

    __slots__ = ("adding_replicas", "fetch_topic_id", "future_log", "in_sync", "is_reassigning", "leaderships")

    def __init__(self, topic_partition: TopicPartition, environment: PartitionEnvironment) -> None:
        super().__init__(topic_partition, environment)
        self.future_log: UnifiedLog | None = None
        self.in_sync = InSyncReplicas(self)
        self.leaderships = 0
        """How often this broker has become the leader. A new epoch of the same leader does not count."""
        self.is_reassigning = False
        """While this broker leads: whether replicas are being added or removed."""
        self.adding_replicas: Sequence[int] = ()
        """The replicas that a reassignment adds, also while this broker follows."""
        self.fetch_topic_id = ZERO_UUID
        """While this broker follows: the topic id for its fetches. Zero if the controller sent none, also when the log
        has one: the leader does not know it by then, either.
        """

    # Leadership

    def make_leader(self, state: LeaderAndIsrPartitionState, topic_id: bytes | None) -> bool:
        """Become the leader under `state`; True when this broker did not lead before.

        A state with an older partition epoch is ignored.
        """
        if state.partition_epoch < self.partition_epoch:
            return False
        self.news.announce()
        is_new_leader = not self.is_leader
        self.leaderships += is_new_leader
        self.in_sync.update_assignment_and_isr(state.replicas, state.isr)
        self.is_reassigning = bool(state.adding_replicas or state.removing_replicas)
        self.adding_replicas = state.adding_replicas
        log = self.create_log_if_not_exists(state, topic_id)
        if state.leader_epoch > self.leader_epoch:
            start_offset = log.log_end_offset
            state_change_log.info(
                "Leader %s with topic id %s starts at leader epoch %d from offset %d with partition epoch %d, high "
                "watermark %d, ISR %s. Previous leader %s and previous leader epoch was %d.",
                self.topic_partition,
                log.topic_id and uuid_to_text(log.topic_id),
                state.leader_epoch,
                start_offset,
                state.partition_epoch,
                log.high_watermark,
                state.isr,
                self.leader_id,
                self.leader_epoch,
            )
            # A follower may hold records of a later epoch than any in our log. We can tell it where to truncate only
            # when the start of our epoch is known before its first fetch.
            log.assign_epoch_start_offset(state.leader_epoch, start_offset)
            self.in_sync.begin_epoch(start_offset, is_new_leader=is_new_leader)
            self.leader_epoch = state.leader_epoch
            self.leader_epoch_start_offset = start_offset
        self.partition_epoch = state.partition_epoch
        self.leader_id = self.environment.broker_id
        self.in_sync.maybe_increment_high_watermark()
        return is_new_leader

    def make_follower(self, state: LeaderAndIsrPartitionState, topic_id: bytes | None) -> bool:
        """Become a follower under `state`; True when its leader epoch is new, so that fetching has to start over."""
        if state.partition_epoch < self.partition_epoch:
            return False
        self.news.announce()
        is_new_epoch = state.leader_epoch > self.leader_epoch
        previous_leader_id, previous_epoch = self.leader_id, self.leader_epoch
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = None
        self.partition_epoch = state.partition_epoch
        self.in_sync.clear()
        self.is_reassigning = False
        self.adding_replicas = state.adding_replicas
        self.fetch_topic_id = topic_id or ZERO_UUID
        log = self.create_log_if_not_exists(state, topic_id)
        if is_new_epoch:
            state_change_log.info(
                "Follower %s starts at leader epoch %d from offset %d with partition epoch %d and high watermark %d. "
                "Current leader is %d. Previous leader %s and previous leader epoch was %d.",
                self.topic_partition,
                state.leader_epoch,
                log.log_end_offset,
                state.partition_epoch,
                log.high_watermark,
                state.leader,
                previous_leader_id,
                previous_epoch,
            )
        return is_new_epoch

    def create_log_if_not_exists(self, state: LeaderAndIsrPartitionState, topic_id: bytes | None) -> UnifiedLog:
        """Return the log; create it when it does not exist, and assign the topic id when it has none."""
        log = self.log
        if log is None:
            log_manager = self.environment.log_manager
            log = log_manager.get_or_create_log(self.topic_partition, topic_id, is_new=state.is_new)
            log.update_high_watermark(log_manager.checkpointed_high_watermark(log))
            self._set_log(log)
        elif topic_id is not None and log.topic_id is None:
            self.news.announce()
            log.assign_topic_id(topic_id)
        return log

    def _set_log(self, log: UnifiedLog) -> None:
        self.news.announce()
        self.log = log
        log.watermarks.on_change = self.news.announce

    def close(self) -> None:
        """Forget the log and the leadership: the partition is being stopped or deleted."""
        self.news.announce()
        self.log = self.future_log = None
        self.leader_id = None
        self.leader_epoch_start_offset = None
        self.in_sync.clear()

    def replace_current_with_future(self) -> None:
        """Replace the log by the future log, which has caught up. Positions in files of the old log become invalid.

        Raises: KafkaError KAFKA_STORAGE_ERROR; the log is unchanged then.
        """
        self._set_log(self.environment.log_manager.replace_current_with_future(self.topic_partition))
        self.future_log = None
        for replica in self.in_sync.replicas.values():
            replica.forget_position()

    # Writes

    def maybe_start_transaction_verification(
        self, producer_id: int, first_sequence: int, producer_epoch: int
    ) -> object | None:
        """The guard that a transactional append passes after its verification; None if its transaction is open here.

        Raises: KafkaError NOT_LEADER_OR_FOLLOWER.
        """
        return self._leader_log().maybe_start_transaction_verification(producer_id, first_sequence, producer_epoch)

    def append_as_leader(
        self,
        records: memoryview,
        origin: AppendOrigin,
        required_acks: int,
        verification_guard: object | None = None,
        *,
        may_take_long: bool = True,
        finished: FinishedValidation | None = None,
    ) -> LogAppendInfo:
        """Append as the leader, and move the high watermark when this broker is alone in the ISR. `finished`: a
        `validation_job` with its result.

        Raises: KafkaError NOT_LEADER_OR_FOLLOWER; NOT_ENOUGH_REPLICAS with acks=-1 and too small an ISR; errors of
        `UnifiedLog.append_as_leader` and `UnifiedLog.append_finished`.
        """
        log = self.log
        if log is None or self.leader_id != self.environment.broker_id:
            raise self._not_leader()
        followers = self.in_sync.replicas  # without any, the ISR is this broker and large enough
        if followers and required_acks == -1:
            self.in_sync.check_min_isr(log)
        if finished is None:
            info = log.append_as_leader(
                records,
                self.leader_epoch,
                origin=origin,
                verification_guard=verification_guard,
                may_take_long=may_take_long,
                is_alone=not followers,
            )
        else:
            info = log.append_finished(records, finished, self.leader_epoch, verification_guard=verification_guard)
        if followers:
            info.high_watermark_moved = self.in_sync.maybe_increment_high_watermark()
        elif not info.is_committed:
            info.high_watermark_moved = log.watermarks.raise_high_watermark_to_end()
            info.is_committed = True
        return info

    def validation_job(self, records: memoryview) -> ValidationJob:
        """See `UnifiedLog.validation_job`. Raises: KafkaError NOT_LEADER_OR_FOLLOWER."""
        return self._leader_log().validation_job(records)

    def delete_records(self, offset: int) -> tuple[int, int]:
        """Move the log start to `offset` (-1: the high watermark); return (that offset, low watermark of all replicas).

        Raises: KafkaError POLICY_VIOLATION for a log that is only compacted; OFFSET_OUT_OF_RANGE;
        NOT_LEADER_OR_FOLLOWER.
        """
        target = self._leader_log().delete_records(offset)
        return target, self.low_watermark()

    def low_watermark(self) -> int:
        """The smallest log start offset over the live replicas: what a DeleteRecords waits for.

        A future log counts as a replica: deleted records must not come back when it replaces the log.
        """
        low = self.in_sync.low_watermark(self._leader_log())
        return low if self.future_log is None else min(low, self.future_log.log_start_offset)

    # Reads

    def read(
        self,
        *,
        fetch_offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        min_one_message: bool,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        leader_only: bool,
        follower_id: int = -1,
    ) -> LogReadInfo:
        """Read from `fetch_offset`. An epoch of -1 means that the request names none.

        Raises: KafkaError FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE.
        """
        log = self.local_log_with_epoch(current_leader_epoch, leader_only)
        if follower_id >= 0 and follower_id not in self.in_sync.replicas:
            raise self.in_sync.not_a_replica(follower_id, current_leader_epoch)
        watermarks = log.watermarks
        high_watermark, stable = watermarks.readable
        start, end = watermarks.log_start_offset, log.local_log.log_end_offset
        diverging = None
        if last_fetched_epoch >= 0 and (
            fetch_offset < start or not log.leader_epochs.continues(last_fetched_epoch, fetch_offset, end)
        ):
            diverging = self._divergence(log, fetch_offset, last_fetched_epoch)
        fetched = None
        if diverging is None:
            fetched = log.read(fetch_offset, max_bytes, isolation, min_one_message)
        return new_tuple(LogReadInfo, (fetched, diverging, high_watermark, start, end, stable))

    def _divergence(self, log: UnifiedLog, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
        if end_offset == UNKNOWN_OFFSET or epoch == NO_PARTITION_LEADER_EPOCH:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Could not determine the end offset of the last fetched epoch {last_fetched_epoch} from the request",
            )
        if fetch_offset < log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {fetch_offset} for partition {self.topic_partition}, but we only have "
                f"log segments in the range {log.log_start_offset} to {log.log_end_offset}.",
            )
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    def last_offset_for_leader_epoch(
        self, current_leader_epoch: int, leader_epoch: int, leader_only: bool
    ) -> tuple[int, int]:
        """(largest epoch at most `leader_epoch`, its end offset); (-1, -1) when undefined."""
        return self.local_log_with_epoch(current_leader_epoch, leader_only).end_offset_for_epoch(leader_epoch)

    def local_log_with_epoch(self, current_leader_epoch: int, leader_only: bool) -> UnifiedLog:
        """The log, after a check of the request's leader epoch (-1: none) and of our leadership.

        Raises: KafkaError FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER.
        """
        if current_leader_epoch not in (self.leader_epoch, NO_PARTITION_LEADER_EPOCH):
            error = (
                ErrorCode.FENCED_LEADER_EPOCH
                if current_leader_epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        elif self.log is None or (leader_only and self.leader_id != self.environment.broker_id):
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            return self.log
        raise KafkaError(
            error,
            f"Failed to find {'leader ' if leader_only else ''}log for partition {self.topic_partition} with leader "
            f"epoch {current_leader_epoch}. The current leader is {self.leader_id} and the current epoch "
            f"{self.leader_epoch}",
        )

    def _leader_log(self) -> UnifiedLog:
        if self.log is None or not self.is_leader:
            raise self._not_leader()
        return self.log

    def _not_leader(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Leader not local for partition {self.topic_partition} on broker {self.environment.broker_id}",
        )
