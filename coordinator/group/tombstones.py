"""Appends tombstones for removed offsets and groups, in batches of at most `max.message.bytes`.

No request waits for them. If an append fails, the next expiration sweep or the next coordinator finds the same offsets
again. Kafka writes all tombstones of a group in one batch of any size.

Kafka: GroupMetadataManager.cleanupGroupMetadata.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from odradek.coordinator.ports import BATCH_OVERHEAD_BYTES, TOMBSTONE_OVERHEAD_BYTES, CoordinatorLog
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.record import SimpleRecord

_log = logging.getLogger(__name__)


def append_tombstones(log: CoordinatorLog, group_id: str, partition: int, keys: Sequence[bytes], now_ms: int) -> None:
    """Append a tombstone for each of the keys, all of one group."""
    limit = log.max_batch_bytes(partition) or 0
    batch: list[SimpleRecord] = []
    size = BATCH_OVERHEAD_BYTES
    for key in keys:
        tombstone_size = TOMBSTONE_OVERHEAD_BYTES + len(key)
        if batch and size + tombstone_size > limit:
            _append(log, group_id, partition, batch)
            batch, size = [], BATCH_OVERHEAD_BYTES
        batch.append(SimpleRecord(now_ms, key, None))
        size += tombstone_size
    if batch:
        _append(log, group_id, partition, batch)


def _append(log: CoordinatorLog, group_id: str, partition: int, tombstones: Sequence[SimpleRecord]) -> None:
    def appended(error: ErrorCode, _: int) -> None:
        if error != ErrorCode.NONE:
            _log.error(
                "Failed to append tombstones of group %s: %s. The next expiration sweep tries again",
                group_id,
                error.name,
            )

    log.append(partition, tombstones, appended, wait_for_replicas=False)
