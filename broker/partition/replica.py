"""The leader's state of one follower, updated by the follower's fetches.

A fetch names the broker epoch of its sender. A fetch with an older epoch than the last one was sent before the broker
restarted, and changes nothing. Apache Kafka does this with KRaft only.

A fetch at or beyond the leader's end offset means that the follower is caught up now. A fetch at or beyond the leader's
end offset of the *previous* fetch means that it was caught up then: so a follower under constant load stays in sync.

A follower that has the whole log stays caught up with every fetch of its session, although the fetch does not name the
partition. Such a replica *rests*: the session stores the time of its last fetch once for all of them (`LastFetch`).

Kafka: Replica, ReplicaState, Replica.updateFetchStateOrThrow, Replica.resetReplicaState.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.offsets import LogOffsetMetadata

NO_BROKER_EPOCH: Final = -1
LONG_AGO_MS: Final = -(2**62)
"""Before any time of the monotonic clock, which begins at 0 when the machine starts."""
UNKNOWN_LOG_START_OFFSET = -1


class LastFetch:
    """The time of a follower's last fetch in one session, by the monotonic clock."""

    __slots__ = ("ms",)

    def __init__(self) -> None:
        self.ms = LONG_AGO_MS


class Replica:
    """The state of one follower; unknown until its first fetch under this leader."""

    __slots__ = (
        "_last_caught_up_ms",
        "_last_fetch_ms",
        "broker_epoch",
        "broker_id",
        "last_fetch_leader_log_end_offset",
        "log_end_offset",
        "log_start_offset",
        "resting_since",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset: LogOffsetMetadata | None = None
        self.log_start_offset = UNKNOWN_LOG_START_OFFSET
        self.last_fetch_leader_log_end_offset = 0
        self._last_fetch_ms = LONG_AGO_MS
        self._last_caught_up_ms = LONG_AGO_MS
        self.resting_since: LastFetch | None = None
        """The times of the session in which its partition rests; None while it is read."""
        self.broker_epoch = NO_BROKER_EPOCH

    @property
    def last_caught_up_ms(self) -> int:
        resting = self.resting_since
        return self._last_caught_up_ms if resting is None else max(self._last_caught_up_ms, resting.ms)

    @property
    def last_fetch_ms(self) -> int:
        resting = self.resting_since
        return self._last_fetch_ms if resting is None else max(self._last_fetch_ms, resting.ms)

    @property
    def is_resting(self) -> bool:
        return self.resting_since is not None

    def rest(self, last_fetch: LastFetch) -> None:
        """It has the whole log; from now on every fetch of its session means that it is caught up."""
        self.resting_since = last_fetch

    def settle(self) -> None:
        """Stop resting; copy the times of the session's fetches."""
        self._last_caught_up_ms, self._last_fetch_ms = self.last_caught_up_ms, self.last_fetch_ms
        self.resting_since = None

    def update_fetch_state(
        self,
        fetch_offset: LogOffsetMetadata,
        log_start_offset: int,
        now_ms: int,
        leader_log_end_offset: int,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        """Record a fetch: the follower's end offset *is* the offset it fetches from. `broker_epoch` is -1 when the
        request names none.

        Raises: KafkaError NOT_LEADER_OR_FOLLOWER when the broker has restarted since it sent the fetch.
        """
        if broker_epoch != NO_BROKER_EPOCH:
            if broker_epoch < self.broker_epoch:
                raise KafkaError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    f"Received stale fetch state update of broker {self.broker_id}: broker epoch {broker_epoch} "
                    f"instead of {self.broker_epoch}",
                )
            self.broker_epoch = broker_epoch
        if fetch_offset.message_offset >= leader_log_end_offset:
            self._last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset.message_offset >= self.last_fetch_leader_log_end_offset:
            self._last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = max(leader_log_end_offset, self.last_fetch_leader_log_end_offset)
        self._last_fetch_ms = now_ms

    def reset_replica_state(
        self, *, now_ms: int, leader_log_end_offset: int, is_new_leader: bool, is_in_isr: bool
    ) -> None:
        """Start over in a new leader epoch; members of the ISR count as caught up now."""
        self.resting_since = None
        caught_up_ms = now_ms if is_in_isr else LONG_AGO_MS
        if is_new_leader:
            self.log_start_offset = UNKNOWN_LOG_START_OFFSET
            self.log_end_offset = None
            self.last_fetch_leader_log_end_offset = 0
            self._last_fetch_ms = LONG_AGO_MS
            self.broker_epoch = NO_BROKER_EPOCH
        else:
            self.last_fetch_leader_log_end_offset = leader_log_end_offset
            self._last_fetch_ms = caught_up_ms
        self._last_caught_up_ms = caught_up_ms

    def forget_position(self) -> None:
        """Drop the file position of the end offset: the leader's log has moved to other files."""
        if self.log_end_offset is not None:
            self.log_end_offset = LogOffsetMetadata(self.log_end_offset.message_offset)

    def is_caught_up(self, leader_log_end_offset: int, now_ms: int, replica_lag_time_max_ms: int) -> bool:
        end = self.log_end_offset
        return (end is not None and end.message_offset == leader_log_end_offset) or (
            now_ms - self.last_caught_up_ms <= replica_lag_time_max_ms
        )

    @property
    def end_offset(self) -> int:
        """-1 while it is unknown."""
        return -1 if self.log_end_offset is None else self.log_end_offset.message_offset

    def __str__(self) -> str:
        return (
            f"(broker id {self.broker_id}, end offset {self.end_offset}, last caught up at {self.last_caught_up_ms} ms)"
        )
