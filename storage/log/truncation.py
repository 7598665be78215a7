"""Truncation: removes the records from an offset on, and the state that follows from them.

Segments above the offset are removed whole. In the segment that contains it, the batch that contains it is removed
whole; the log end becomes the offset itself. Leader epochs, producer state, watermarks and the recovery point follow.

A loss of power during a truncation keeps some of the changes and loses others, in any order: it can leave a gap in the
log, or a shorter file with its old index. The next start scans for this from the checkpointed recovery point on. Hence
the order:

    1. checkpoint a recovery point at or below the offset    `when_cuttable`, which waits for the disk in the background
    2. truncate                                              `truncate_to`, `truncate_fully_and_start_at`
    3. cut and sync the truncated files                      the sync queue; only then may anything be appended

The thread of the sync queue cuts the file of the last segment, and does so before it stores any later change of the
log, such as the leader epochs: a process that dies before has the log of before the truncation, whose end is scanned.
An append that comes first carries out the cut itself, and so does the end of the segment or of the log.

Apache checkpoints after it has truncated: a loss of power in between leaves a gap that no scan finds.

Invariants: no checkpoint, stored or queued, is above the recovery point of the log; files are truncated from the end of
the log towards the offset, so that a process that dies in between leaves a log without a gap.

Kafka: UnifiedLog.truncateTo, UnifiedLog.truncateFullyAndStartAt.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.storage.log.segment_deletion import delete_snapshots
from odradek.storage.producers.producer_recovery import rebuild_producer_state, replay_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from odradek.storage.log.log_state import LogState
    from odradek.storage.producers.producer_state_manager import ProducerMemory

logger = logging.getLogger(__name__)


def when_cuttable(
    log: LogState, offset: int, checkpoint: Callable[[], None], callback: Callable[[OSError | None], None]
) -> None:
    """Call back when the checkpointed recovery point is at or below `offset`; at once if it is so already.

    `checkpoint` queues the checkpoint of recovery points. The callback gets the error if it could not be stored. The
    truncation belongs into the callback: afterwards, checkpoints contain the full recovery point again.
    """
    flusher = log.flusher
    if flusher.recovery_point <= offset:
        callback(None)
        return
    flusher.cap_checkpoint_offset(offset)

    def lowered(error: OSError | None) -> None:
        try:
            callback(error)
        finally:
            flusher.uncap_checkpoint_offset(offset)

    checkpoint()
    log.log_dir.sync_queue.when_durable(lowered)


def truncate_to(log: LogState, offset: int, now_ms: int, producers: ProducerMemory | None = None) -> bool:
    """Make `offset` the log end; False when the log ends at or below it. `producers`: see `replay_producers`."""
    if offset < 0:
        raise ValueError(f"Cannot truncate partition {log.topic_partition} to a negative offset ({offset}).")
    if offset >= log.local_log.log_end_offset:
        # A leader that appended nothing may have left an epoch at the log end, which the next leader does not have.
        log.leader_epochs.truncate_from_end(log.local_log.log_end_offset)
        return False
    if log.segments.first.base_offset > offset:
        truncate_fully_and_start_at(log, offset, None, now_ms)
        return True
    logger.info("Truncating %s to offset %d", log.topic_partition, offset)
    delete_snapshots(log, log.local_log.truncate_to(offset))
    log.flusher.truncated_to(offset)
    log.leader_epochs.truncate_from_end(offset)
    log.watermarks.log_start_offset = min(offset, log.watermarks.log_start_offset)
    _rebuild_producers(log, now_ms, producers)
    log.watermarks.update_high_watermark(log.watermarks.high_watermark)
    records = log.segments.active.records
    log.log_dir.sync_queue.sync_fd(records.duplicate_fd(), None if records.cut is None else records.cut.carry_out)
    log.log_dir.sync_queue.sync_dir(log.local_log.dir)
    return True


def truncate_fully_and_start_at(log: LogState, offset: int, log_start_offset: int | None, now_ms: int) -> None:
    """Remove all data; the next record gets `offset`. `log_start_offset` may be lower; None means `offset`."""
    logger.info("Truncating %s fully, to start at offset %d", log.topic_partition, offset)
    first_offset = log.segments.first.base_offset
    log.local_log.truncate_fully_and_start_at(offset)
    # The recovery point stays at or below both offsets until the next flush: after a loss of power the old files may
    # still have their names.
    log.flusher.truncated_to(min(first_offset, offset))
    log.leader_epochs.clear()
    log.producers.truncate_fully_and_start_at(offset)
    log.watermarks.log_start_offset = offset if log_start_offset is None else log_start_offset
    _rebuild_producers(log, now_ms)
    log.watermarks.update_high_watermark(offset)
    log.log_dir.sync_queue.sync_dir(log.local_log.dir)


def replay_producers(log: LogState, offset: int, now_ms: int) -> Generator[None, None, ProducerMemory | None]:
    """The producer state of a log that ends at `offset`; None if there is nothing to replay.

    A log of small batches takes seconds to replay. A truncation on the event loop runs this generator first, yields to
    other tasks at each step, and afterwards checks that the log has not changed.
    """
    if log.producers.is_empty or not log.watermarks.log_start_offset < offset < log.local_log.log_end_offset:
        return None
    return (
        yield from replay_beside(
            log.producers,
            log.segments,
            log_start_offset=log.watermarks.log_start_offset,
            last_offset=offset,
            now_ms=now_ms,
        )
    )


def _rebuild_producers(log: LogState, now_ms: int, replayed: ProducerMemory | None = None) -> None:
    rebuild_producer_state(
        log.producers,
        log.segments,
        log_start_offset=log.watermarks.log_start_offset,
        last_offset=log.local_log.log_end_offset,
        now_ms=now_ms,
        after_clean_shutdown=False,
        replayed=replayed,
    )
