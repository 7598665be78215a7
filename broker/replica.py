"""What a leader knows of one follower, and it learns of it only through its fetches (Kafka's ``Replica``).

A fetch at or beyond the leader's end offset means caught up now; a fetch at or beyond what the leader's end offset was
at the *previous* fetch means caught up then, so that a follower under constant load is not thrown out.
"""

from __future__ import annotations

from odradek.storage.offsets import LogOffsetMetadata

UNKNOWN_LOG_START_OFFSET = -1


class Replica:
    """What the leader knows of one follower. Offsets are -1 until its first fetch."""

    __slots__ = (
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_log_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset: LogOffsetMetadata | None = None
        self.log_start_offset = UNKNOWN_LOG_START_OFFSET
        self.last_fetch_leader_log_end_offset = 0
        self.last_fetch_ms = 0
        self.last_caught_up_ms = 0

    def record_fetch(
        self, fetch_offset: LogOffsetMetadata, log_start_offset: int, now_ms: int, leader_log_end_offset: int
    ) -> None:
        """Note a fetch: the follower's end offset *is* the offset it fetches from."""
        if fetch_offset.message_offset >= leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset.message_offset >= self.last_fetch_leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = max(leader_log_end_offset, self.last_fetch_leader_log_end_offset)
        self.last_fetch_ms = now_ms

    def reset(self, *, now_ms: int, leader_log_end_offset: int, is_new_leader: bool, is_in_isr: bool) -> None:
        """Start over at a new leader epoch; members of the ISR count as caught up now."""
        caught_up_ms = now_ms if is_in_isr else 0
        if is_new_leader:
            self.log_start_offset = UNKNOWN_LOG_START_OFFSET
            self.log_end_offset = None
            self.last_fetch_leader_log_end_offset = 0
            self.last_fetch_ms = 0
        else:
            self.last_fetch_leader_log_end_offset = leader_log_end_offset
            self.last_fetch_ms = caught_up_ms
        self.last_caught_up_ms = caught_up_ms

    def forget_position(self) -> None:
        """The leader's log lies in other files now: an offset is still an offset, its place is not."""
        if self.log_end_offset is not None:
            self.log_end_offset = LogOffsetMetadata(self.log_end_offset.message_offset)

    def is_caught_up(self, leader_log_end_offset: int, now_ms: int, replica_lag_time_max_ms: int) -> bool:
        end = self.log_end_offset
        return (end is not None and end.message_offset == leader_log_end_offset) or (
            now_ms - self.last_caught_up_ms <= replica_lag_time_max_ms
        )
