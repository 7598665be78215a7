"""In-sync replicas, decided purely: what follows from what a leader knows of its followers (Kafka's ``Partition``).

* The high watermark is the smallest end offset over the leader and the replicas that are in the ISR, or caught up and
  about to be: else a follower that has just caught up could never join.
* `effective_min_isr` is min(``min.insync.replicas``, assigned replicas).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.replica import Replica
    from odradek.storage.offsets import LogOffsetMetadata


def high_watermark_candidate(
    leader_end: LogOffsetMetadata,
    replicas: Iterable[Replica],
    maximal_isr: frozenset[int],
    now_ms: int,
    replica_lag_time_max_ms: int,
) -> LogOffsetMetadata | None:
    """The offset up to which every replica that counts has the log; None while one of them has not fetched yet."""
    candidate = leader_end
    for replica in replicas:
        counts = replica.broker_id in maximal_isr or replica.is_caught_up(
            leader_end.message_offset, now_ms, replica_lag_time_max_ms
        )
        if not counts:
            continue
        end = replica.log_end_offset
        if end is None:
            return None
        if end.message_offset < candidate.message_offset:
            candidate = end
    return candidate


def effective_min_isr(min_insync_replicas: int, replication_factor: int) -> int:
    return min(min_insync_replicas, replication_factor)
