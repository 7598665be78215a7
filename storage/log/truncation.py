"""Cutting a log back: the records above an offset go, and everything that was known because of them.

Segments above the offset go as a whole; in the one that holds it, the batch with the offset goes as a whole too, while
the log end becomes the offset itself. Epochs, producer state, watermarks and the recovery point follow.

A loss of power in the middle keeps some of the changes and loses others, in any order: a hole may be left, a file that
is cut and an index that is not. The next start looks for that from the checkpointed recovery point on. So the order is

    1. a checkpoint that promises no more than the offset    `when_cuttable`, which waits for the disk in the background
    2. the cut                                               `truncate_to`, `truncate_fully_and_start_at`
    3. the cut is on the disk                                the sync queue; only then may anything be appended

Apache's checkpoint follows the cut: a loss of power between them leaves it a hole that no scan looks at.

Invariants: no checkpoint on the disk, or on its way there, is above the recovery point of the log; files are cut from
the end of the log towards the offset, so that a process that dies in between leaves a log without a hole.

Kafka: UnifiedLog.truncateTo and truncateFullyAndStartAt.
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
    """Call back once no checkpoint promises anything at `offset` or above: at once if none does, or with the error that
    keeps the checkpoint from being stored. `checkpoint` queues it.

    The cut belongs into the callback: when that returns, checkpoints follow the recovery point again.
    """
    flusher = log.flusher
    if flusher.recovery_point <= offset:
        callback(None)
        return
    flusher.promise_at_most(offset)

    def lowered(error: OSError | None) -> None:
        try:
            callback(error)
        finally:
            flusher.promise_again(offset)

    checkpoint()
    log.log_dir.sync_queue.when_durable(lowered)


def truncate_to(log: LogState, offset: int, now_ms: int, producers: ProducerMemory | None = None) -> bool:
    """Let the log end at `offset`; False when it ends there or earlier already. `producers`: see `replay_producers`."""
    if offset < 0:
        raise ValueError(f"Cannot truncate partition {log.topic_partition} to a negative offset ({offset}).")
    if offset >= log.local_log.log_end_offset:
        # A leader that appended nothing may have left an epoch at the end that the next leader contradicts.
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
    log.log_dir.sync_queue.sync_fd(log.segments.active.records.duplicate_fd())
    log.log_dir.sync_queue.sync_dir(log.local_log.dir)
    return True


def truncate_fully_and_start_at(log: LogState, offset: int, log_start_offset: int | None, now_ms: int) -> None:
    """Drop all data and begin anew at `offset`; the log start may be told to lie below."""
    logger.info("Truncating %s fully, to start at offset %d", log.topic_partition, offset)
    first_offset = log.segments.first.base_offset
    log.local_log.truncate_fully_and_start_at(offset)
    # Not to `offset`, until something is flushed: the files of before may still be found under their names.
    log.flusher.truncated_to(min(first_offset, offset))
    log.leader_epochs.clear()
    log.producers.truncate_fully_and_start_at(offset)
    log.watermarks.log_start_offset = offset if log_start_offset is None else log_start_offset
    _rebuild_producers(log, now_ms)
    log.watermarks.update_high_watermark(offset)
    log.log_dir.sync_queue.sync_dir(log.local_log.dir)


def replay_producers(log: LogState, offset: int, now_ms: int) -> Generator[None, None, ProducerMemory | None]:
    """The producers as they will be when the log ends at `offset`; None if there is nothing to replay.

    A log of small batches takes seconds to replay: whoever cuts it on an event loop does this first, giving others
    their turn at each yield, and makes sure that the log has not changed when it is through.
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
