"""The followers of a partition that is led here: what they have, who is in sync, and what is committed.

Everything is set off by a follower's fetch, by an append, by the answer of the controller or, for followers that are
not heard of, by a timer; what else may raise the high watermark is in `high_watermark_reviews.py`. The rules:

* A follower joins the ISR when its log reaches the high watermark *and* the start of our leader epoch: between the two
  there may be records that were committed under an earlier leader.
* It leaves when its end offset is not ours and it has not been caught up for ``replica.lag.time.max.ms``.
* The high watermark is the smallest end offset over the maximal ISR and those about to join. It never goes back, and
  does not move while the ISR is smaller than ``min.insync.replicas``.

What changes an ISR is in `isr.py`. Kafka: the leader's side of Kafka's ``Partition``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.inter_broker.alter_partition_manager import AlterPartitionItem
from odradek.broker.partition.isr import NO_ISR, Answer, IsrState, effective_min_isr, high_watermark_candidate, meaning
from odradek.broker.partition.replica import NO_BROKER_EPOCH, Replica
from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.partition.leadership import Leadership
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.offsets import LogOffsetMetadata

log = logging.getLogger(__name__)


class InSyncReplicas:
    """`replicas` are the followers by broker id; there are none while the partition is not led here."""

    __slots__ = ("_environment", "_leadership", "replicas", "state")

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._environment = leadership.environment
        self.replicas: dict[int, Replica] = {}
        self.state = NO_ISR

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed one."""
        return self.state.isr

    # What the controller says

    def assign(self, replicas: Iterable[int], isr: Iterable[int]) -> None:
        """We lead `replicas` with this ISR. What is known of followers that stay is kept."""
        known = self.replicas
        others = (replica for replica in replicas if replica != self._environment.broker_id)
        self.replicas = {replica: known.get(replica) or Replica(replica) for replica in others}
        self.state = IsrState.committed(isr)

    def clear(self) -> None:
        """We do not lead."""
        self.replicas = {}
        self.state = NO_ISR

    def begin_epoch(self, start_offset: int, *, is_new_leader: bool) -> None:
        now_ms = self._environment.clock.monotonic_ms()
        for replica in self.replicas.values():
            replica.reset(
                now_ms=now_ms,
                leader_log_end_offset=start_offset,
                is_new_leader=is_new_leader,
                is_in_isr=replica.broker_id in self.isr,
            )

    # What a follower says

    def check_follower(self, broker_id: int, current_leader_epoch: int) -> None:
        """Whether a broker may fetch as a follower, under the leader epoch it names (-1: none).

        Raises: KafkaError UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER when it is no replica of ours.
        """
        if broker_id in self.replicas:
            return
        leadership = self._leadership
        # With an epoch in the request the pair (replica, epoch) is what we do not know yet; without one nobody can say
        # whose state is stale.
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Replica {broker_id} is not recognized as a valid replica of {leadership.topic_partition} in leader epoch "
            f"{leadership.leader_epoch} with partition epoch {leadership.partition_epoch}",
        )

    def record_fetch(
        self,
        broker_id: int,
        fetch_offset: LogOffsetMetadata,
        log_start_offset: int,
        leader_log_end_offset: int,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        """Note a fetch of one of our followers, and whatever follows from it. `leader_log_end_offset` is that before
        the read, so that what is appended afterwards keeps no follower from coming into sync.

        Raises: as `Replica.record_fetch`.
        """
        replica = self.replicas[broker_id]
        if replica.is_resting:
            self._leadership.news.announce()  # in another session than the one that asks now
        old_end, old_start = replica.end_offset, replica.log_start_offset
        replica.record_fetch(
            fetch_offset,
            log_start_offset,
            self._environment.clock.monotonic_ms(),
            leader_log_end_offset,
            broker_epoch,
        )
        self._maybe_expand(replica)
        has_moved = False
        if old_end != fetch_offset.message_offset:
            has_moved = self.maybe_increment_high_watermark()
        if has_moved or old_start != log_start_offset:
            self._environment.offsets_moved(self._leadership.topic_partition)

    # What is committed

    def min_isr(self, leader_log: UnifiedLog) -> int:
        return effective_min_isr(leader_log.config.min_insync_replicas, len(self.replicas) + 1)

    def maybe_increment_high_watermark(self) -> bool:
        """Move the high watermark as far as the in-sync replicas allow; True when it moved."""
        leader_log = self._leadership.log
        if leader_log is None or len(self.state.isr) < self.min_isr(leader_log):
            return False
        if not self.replicas:
            return leader_log.watermarks.raise_high_watermark_to_end()
        end = leader_log.log_end_offset_metadata
        candidate = high_watermark_candidate(
            end,
            self.replicas.values(),
            self.state.maximal_isr,
            lambda replica: self._is_caught_up(replica, end.message_offset) and self._is_eligible(replica.broker_id),
        )
        return candidate is not None and leader_log.maybe_increment_high_watermark(candidate)

    def review_high_watermark(self) -> None:
        """Something other than an append or a fetch may let the high watermark rise: see `high_watermark_reviews`."""
        if self.maybe_increment_high_watermark():
            self._environment.offsets_moved(self._leadership.topic_partition)

    def has_reached(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Whether an acks=-1 append up to `required_offset` (exclusive) is answered, and with what."""
        leader_log = self._leadership.log
        if leader_log is None or not self._leadership.is_leader:
            return False, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leader_log.high_watermark < required_offset:
            return False, ErrorCode.NONE
        if self.min_isr(leader_log) <= len(self.state.maximal_isr):
            return True, ErrorCode.NONE
        return True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def low_watermark(self, leader_log: UnifiedLog) -> int:
        """The smallest log start offset over the live replicas: a DeleteRecords is done when it is reached."""
        low = leader_log.log_start_offset
        for replica in self.replicas.values():
            if replica.log_start_offset < low and self._is_eligible(replica.broker_id):
                low = replica.log_start_offset
        return low

    # Who is in sync

    def maybe_shrink(self) -> None:
        """Propose an ISR without the followers that have not been caught up for too long."""
        leadership, state = self._leadership, self.state
        leader_log = leadership.log
        if state.is_in_flight or leader_log is None or not leadership.is_leader:
            return
        lagging = self._out_of_sync(leader_log.log_end_offset)
        if not lagging:
            return
        proposal = state.shrink(
            lagging, self._environment.broker_id, leadership.leader_epoch, leadership.partition_epoch
        )
        log.info(
            "[Partition %s] Shrinking ISR from %s to %s. Leader: high watermark %d, end offset %d. Out of sync: %s",
            leadership.topic_partition,
            _text(state.isr),
            _text(proposal.proposed.isr if proposal.proposed else ()),
            leader_log.high_watermark,
            leader_log.log_end_offset,
            "; ".join(str(self.replicas.get(broker_id, broker_id)) for broker_id in lagging),
        )
        self._propose(proposal)

    def _out_of_sync(self, leader_log_end_offset: int) -> list[int]:
        lagging = []
        for member in self.state.isr:
            if member == self._environment.broker_id:
                continue
            replica = self.replicas.get(member)
            if replica is None or not self._is_caught_up(replica, leader_log_end_offset):
                lagging.append(member)
        return lagging

    def _maybe_expand(self, replica: Replica) -> None:
        leadership, state = self._leadership, self.state
        if state.is_in_flight or replica.broker_id in state.isr:
            return
        leader_log, epoch_start = leadership.log, leadership.leader_epoch_start_offset
        if leader_log is None or epoch_start is None or not self._is_eligible(replica.broker_id):
            return
        if replica.end_offset >= max(leader_log.high_watermark, epoch_start):
            self._propose(
                state.expand(
                    replica.broker_id, self._environment.broker_id, leadership.leader_epoch, leadership.partition_epoch
                )
            )

    def _is_eligible(self, broker_id: int) -> bool:
        """Brokers that are shutting down are alive here; the controller refuses them."""
        return self._environment.metadata_cache.is_alive(broker_id)

    def _is_caught_up(self, replica: Replica, leader_log_end_offset: int) -> bool:
        environment = self._environment
        return replica.is_caught_up(
            leader_log_end_offset, environment.clock.monotonic_ms(), environment.replica_lag_time_max_ms
        )

    # What the controller answers

    def _propose(self, proposal: IsrState) -> None:
        assert proposal.proposed is not None
        self.state = proposal
        leadership = self._leadership
        self._environment.alter_partition.submit(
            AlterPartitionItem(
                leadership.topic_partition, leadership.topic_id, proposal.proposed, partial(self._answered, proposal)
            )
        )

    def _answered(self, proposal: IsrState, answer: LeaderAndIsr | ErrorCode) -> None:
        if self.state is not proposal:
            return  # the controller has said something since
        leadership = self._leadership
        match meaning(answer, leadership.leader_epoch, leadership.partition_epoch):
            case Answer.DONE:
                assert isinstance(answer, LeaderAndIsr)
                self._commit(answer)
            case Answer.NOT_DONE:
                self.state = proposal.reverted()
                log.info("[Partition %s] ISR stays %s: %r", leadership.topic_partition, _text(self.state.isr), answer)
                self.review_high_watermark()  # the one that was to join counted as a member
            case Answer.PROPOSE_AGAIN:
                log.warning(
                    "[Partition %s] Failed to update ISR to %s: %r. Retrying.",
                    leadership.topic_partition,
                    proposal.proposed,
                    answer,
                )
                self._propose(proposal)
            case Answer.WAIT:
                log.debug("[Partition %s] ISR change %s: %s", leadership.topic_partition, proposal.proposed, answer)

    def _commit(self, answer: LeaderAndIsr) -> None:
        leadership = self._leadership
        self.state = IsrState.committed(answer.isr)
        leadership.news.announce()  # who has left may rest no longer: each of its fetches may bring it back
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
