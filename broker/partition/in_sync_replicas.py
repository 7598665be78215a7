"""The followers of a partition that is led here: their end offsets, the ISR, and the high watermark.

State changes on a follower's fetch, on an append, on the controller's answer, and by a timer for followers that do not
fetch. `high_watermark_reviews.py` lists the other events that may raise the high watermark. The rules:

* A follower joins the ISR when its log reaches the high watermark *and* the start of our leader epoch: between the two
  there may be records that were committed under an earlier leader.
* It leaves when its end offset differs from ours and it has not been caught up for ``replica.lag.time.max.ms``.
* The high watermark is the smallest end offset over the maximal ISR and the followers that may join. It never goes
  back, and does not move while the ISR is smaller than ``min.insync.replicas``.

The state machine of the ISR is in `isr.py`.

Kafka: Partition.maybeShrinkIsr, Partition.maybeExpandIsr, Partition.updateFollowerFetchState,
Partition.updateAssignmentAndIsr, Partition.maybeIncrementLeaderHW, Partition.checkEnoughReplicasReachOffset,
Partition.submitAlterPartition, Partition.getOutOfSyncReplicas, Partition.lowWatermarkIfLeader.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.inter_broker.alter_partition_manager import AlterPartitionItem
from odradek.broker.partition.isr import (
    NO_ISR,
    CommittedPartitionState,
    Outcome,
    PendingExpandIsr,
    effective_min_isr,
    high_watermark_candidate,
    outcome,
)
from odradek.broker.partition.replica import NO_BROKER_EPOCH, Replica
from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from odradek.broker.partition.isr import PartitionState, PendingPartitionChange
    from odradek.broker.partition.leadership import Leadership
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.offsets import LogOffsetMetadata

log = logging.getLogger(__name__)


class InSyncReplicas:
    """`replicas` are the followers by broker id, empty while the partition is not led here."""

    __slots__ = ("_environment", "_leadership", "replicas", "state")

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._environment = leadership.environment
        self.replicas: dict[int, Replica] = {}
        self.state: PartitionState = NO_ISR

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        return self.state.isr

    # LeaderAndIsr

    def update_assignment_and_isr(self, replicas: Iterable[int], isr: Iterable[int]) -> None:
        """Lead `replicas` with this ISR. The state of followers that stay is kept."""
        known = self.replicas
        others = (replica for replica in replicas if replica != self._environment.broker_id)
        self.replicas = {replica: known.get(replica) or Replica(replica) for replica in others}
        self.state = CommittedPartitionState(isr)

    def clear(self) -> None:
        """Forget the followers: this broker no longer leads."""
        self.replicas = {}
        self.state = NO_ISR

    def begin_epoch(self, start_offset: int, *, is_new_leader: bool) -> None:
        now_ms = self._environment.clock.monotonic_ms()
        for replica in self.replicas.values():
            replica.reset_replica_state(
                now_ms=now_ms,
                leader_log_end_offset=start_offset,
                is_new_leader=is_new_leader,
                is_in_isr=replica.broker_id in self.isr,
            )

    # Fetches of followers

    def not_a_replica(self, broker_id: int, current_leader_epoch: int) -> KafkaError:
        """The error for a follower that is not in `replicas`. `current_leader_epoch` is the request's, -1 for none."""
        leadership = self._leadership
        # With an epoch in the request our own state may be the older one, so the follower retries. Without one it is
        # unknown which side is stale.
        return KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Replica {broker_id} is not recognized as a valid replica of {leadership.topic_partition} in leader epoch "
            f"{leadership.leader_epoch} with partition epoch {leadership.partition_epoch}",
        )

    def update_follower_fetch_state(
        self,
        broker_id: int,
        fetch_offset: LogOffsetMetadata,
        log_start_offset: int,
        leader_log_end_offset: int,
        now_ms: int,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        """Record a follower's fetch; it may expand the ISR and raise the high watermark. `leader_log_end_offset` is the
        end offset before the read, so that later appends do not keep the follower out of sync.

        Raises: as `Replica.update_fetch_state`.
        """
        replica = self.replicas[broker_id]
        if replica.resting_since is not None:
            self._leadership.news.announce()  # it rests in another fetch session than this one
        old_end, old_start = replica.log_end_offset, replica.log_start_offset
        replica.update_fetch_state(
            fetch_offset,
            log_start_offset,
            now_ms,
            leader_log_end_offset,
            broker_epoch,
        )
        if broker_id not in self.state.isr:
            self._maybe_expand_isr(replica)
        has_moved = False
        if old_end is None or old_end.message_offset != fetch_offset.message_offset:
            has_moved = self.maybe_increment_high_watermark()
        if has_moved or old_start != log_start_offset:
            self._environment.watermarks_moved(self._leadership.topic_partition)

    # The high watermark

    def min_isr(self, leader_log: UnifiedLog) -> int:
        return effective_min_isr(leader_log.config.min_insync_replicas, len(self.replicas) + 1)

    def is_below_min_isr(self, isr: Collection[int], leader_log: UnifiedLog) -> bool:
        """Whether an ISR is too small for acks=-1; the ISR of all replicas never is."""
        return len(isr) <= len(self.replicas) and len(isr) < self.min_isr(leader_log)

    def check_min_isr(self, leader_log: UnifiedLog) -> None:
        """Raises: KafkaError NOT_ENOUGH_REPLICAS if the ISR is too small for acks=-1."""
        isr = self.state.isr
        if self.is_below_min_isr(isr, leader_log):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(isr)} is insufficient to satisfy the min.isr requirement "
                f"of {self.min_isr(leader_log)} for partition {self._leadership.topic_partition}",
            )

    def maybe_increment_high_watermark(self) -> bool:
        """Move the high watermark as far as the ISR allows; True when it moved."""
        leader_log, replicas, isr = self._leadership.log, self.replicas, self.state.isr
        if leader_log is None or (len(isr) <= len(replicas) and self.is_below_min_isr(isr, leader_log)):
            return False
        if not replicas:
            return leader_log.watermarks.raise_high_watermark_to_end()
        end = leader_log.local_log.end_offset_metadata
        candidate = high_watermark_candidate(
            end,
            replicas.values(),
            self.state.maximal_isr,
            lambda replica: self._is_caught_up(replica, end.message_offset) and self._is_eligible(replica.broker_id),
        )
        return candidate is not None and leader_log.watermarks.maybe_increment_high_watermark(candidate)

    def review_high_watermark(self) -> None:
        """Check the high watermark after an event other than an append or a fetch: see `high_watermark_reviews`."""
        if self.maybe_increment_high_watermark():
            self._environment.watermarks_moved(self._leadership.topic_partition)

    def check_enough_replicas_reach_offset(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Whether an acks=-1 append up to `required_offset` (exclusive) can be answered, and the error code."""
        leadership = self._leadership
        leader_log = leadership.log
        if leader_log is None or leadership.leader_id != self._environment.broker_id:
            return False, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leader_log.watermarks.high_watermark < required_offset:
            return False, ErrorCode.NONE
        if self.is_below_min_isr(self.state.maximal_isr, leader_log):
            return True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, ErrorCode.NONE

    def low_watermark(self, leader_log: UnifiedLog) -> int:
        """The smallest log start offset over the live replicas: what a DeleteRecords waits for."""
        low = leader_log.log_start_offset
        for replica in self.replicas.values():
            if replica.log_start_offset < low and self._is_eligible(replica.broker_id):
                low = replica.log_start_offset
        return low

    # Changes of the ISR

    def maybe_shrink_isr(self) -> None:
        """Propose an ISR without the followers that were not caught up within ``replica.lag.time.max.ms``."""
        leadership, state = self._leadership, self.state
        leader_log = leadership.log
        if not isinstance(state, CommittedPartitionState) or leader_log is None or not leadership.is_leader:
            return
        lagging = self._out_of_sync_replicas(leader_log.log_end_offset)
        if not lagging:
            return
        proposal = state.shrink(
            lagging, self._environment.broker_id, leadership.leader_epoch, leadership.partition_epoch
        )
        log.info(
            "[Partition %s] Shrinking ISR from %s to %s. Leader: high watermark %d, end offset %d. Out of sync: %s",
            leadership.topic_partition,
            _text(state.isr),
            _text(proposal.sent_leader_and_isr.isr),
            leader_log.high_watermark,
            leader_log.log_end_offset,
            "; ".join(str(self.replicas.get(broker_id, broker_id)) for broker_id in lagging),
        )
        self._submit_alter_partition(proposal)

    def _out_of_sync_replicas(self, leader_log_end_offset: int) -> list[int]:
        lagging = []
        for member in self.state.isr:
            if member == self._environment.broker_id:
                continue
            replica = self.replicas.get(member)
            if replica is None or not self._is_caught_up(replica, leader_log_end_offset):
                lagging.append(member)
        return lagging

    def _maybe_expand_isr(self, replica: Replica) -> None:
        """Propose a follower that is not in the ISR when it has caught up."""
        leadership, state = self._leadership, self.state
        if not isinstance(state, CommittedPartitionState):
            return
        leader_log, epoch_start = leadership.log, leadership.leader_epoch_start_offset
        if leader_log is None or epoch_start is None or not self._is_eligible(replica.broker_id):
            return
        if replica.end_offset >= max(leader_log.high_watermark, epoch_start):
            self._submit_alter_partition(
                state.expand(
                    replica.broker_id, self._environment.broker_id, leadership.leader_epoch, leadership.partition_epoch
                )
            )

    def _is_eligible(self, broker_id: int) -> bool:
        """Whether the broker is alive. A broker that is shutting down is; the controller refuses it."""
        return self._environment.metadata_cache.is_alive(broker_id)

    def _is_caught_up(self, replica: Replica, leader_log_end_offset: int) -> bool:
        environment = self._environment
        return replica.is_caught_up(
            leader_log_end_offset, environment.clock.monotonic_ms(), environment.replica_lag_time_max_ms
        )

    # The controller's answers

    def _submit_alter_partition(self, proposal: PendingPartitionChange) -> None:
        self.state = proposal
        leadership = self._leadership
        self._environment.alter_partition.submit(
            AlterPartitionItem(
                leadership.topic_partition,
                leadership.topic_id,
                proposal.sent_leader_and_isr,
                partial(self._answered, proposal),
            )
        )

    def _answered(self, proposal: PendingPartitionChange, answer: LeaderAndIsr | ErrorCode) -> None:
        if self.state is not proposal:
            return  # a LeaderAndIsr has replaced the proposal
        leadership = self._leadership
        self._environment.isr_changes.failed += not isinstance(answer, LeaderAndIsr)
        match outcome(answer, leadership.leader_epoch, leadership.partition_epoch):
            case Outcome.APPLIED:
                assert isinstance(answer, LeaderAndIsr)
                if isinstance(proposal, PendingExpandIsr):
                    self._environment.isr_changes.expanded += 1
                else:
                    self._environment.isr_changes.shrunk += 1
                self._commit(answer)
            case Outcome.NOT_APPLIED:
                self.state = proposal.last_committed_state
                log.info(
                    "[Partition %s] The controller refused ISR %s (%r); it stays %s",
                    leadership.topic_partition,
                    _text(proposal.sent_leader_and_isr.isr),
                    answer,
                    _text(self.state.isr),
                )
                self.review_high_watermark()  # the replica that did not join no longer holds it back
            case Outcome.PROPOSE_AGAIN:
                log.warning(
                    "[Partition %s] Failed to update ISR to %s: %r. Retrying.",
                    leadership.topic_partition,
                    proposal.sent_leader_and_isr,
                    answer,
                )
                self._submit_alter_partition(proposal)
            case Outcome.WAIT:
                log.debug(
                    "[Partition %s] No LeaderAndIsr yet for ISR %s: the controller answered %s",
                    leadership.topic_partition,
                    proposal.sent_leader_and_isr,
                    answer,
                )

    def _commit(self, answer: LeaderAndIsr) -> None:
        leadership = self._leadership
        self.state = CommittedPartitionState(answer.isr)
        leadership.news.announce()  # a follower that left the ISR must not rest: each of its fetches may bring it back
        leadership.partition_epoch = answer.partition_epoch
        log.info(
            "[Partition %s] ISR updated to %s and version updated to %d",
            leadership.topic_partition,
            _text(answer.isr),
            answer.partition_epoch,
        )
        self.review_high_watermark()


def _text(isr: Iterable[int]) -> str:
    return ",".join(map(str, isr))
