"""A follower's changes of its log beside appends: it takes over watermarks, and truncates without blocking the loop.

Kafka: ReplicaFetcherThread.processPartitionData, ReplicaFetcherThread.truncate.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.disk.disk_space import LogDirFullError, is_no_space
from odradek.storage.log.truncation import replay_producers

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_manager import LogManager
    from odradek.storage.producers.producer_state_manager import ProducerMemory

logger = logging.getLogger(__name__)


def follow_watermarks(log: UnifiedLog, high_watermark: int, log_start_offset: int) -> bool:
    """Take over the leader's watermarks; True when the high watermark has moved. It may go back: records above the
    leader's high watermark may not be committed.
    """
    watermarks = log.watermarks
    before = watermarks.high_watermark
    moved = watermarks.update_high_watermark(high_watermark) != before
    if log_start_offset > watermarks.log_start_offset:
        log.maybe_increment_log_start_offset(log_start_offset, "leader offset increment")
    return moved


async def producers_at(log: UnifiedLog, offset: int, now_ms: int) -> ProducerMemory | None:
    """The producer states at `offset`, for a truncation. None when it has nothing to replay, or when the replay failed:
    the truncation itself then meets the error.
    """
    replay = replay_producers(log.state, offset, now_ms)
    try:
        while True:
            next(replay)
            await asyncio.sleep(0)
    except StopIteration as end:
        producers: ProducerMemory | None = end.value
        return producers
    except (OSError, KafkaError) as error:
        logger.warning("Cannot replay the producer states of %s before its truncation: %s", log, error)
        return None


async def when_cuttable(log_manager: LogManager, log: UnifiedLog, offset: int, cut: Callable[[], bool]) -> bool:
    """Call `cut` when the log may be truncated to `offset`, and return its result.

    Other code runs before: `cut` must check again whether the log should be truncated at all. Raises: KafkaError.
    """
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def cuttable(error: OSError | None) -> None:
        if done.done():
            return  # the waiting task was cancelled
        was_cut = False
        try:
            if error is not None and is_no_space(error):
                raise LogDirFullError(log.log_dir.path)
            if error is not None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot truncate {log}: {error}")
            was_cut = cut()
        except KafkaError as failure:
            done.set_exception(failure)
        finally:
            if not done.done():
                done.set_result(was_cut)

    log_manager.when_cuttable(log, offset, cuttable)
    return await done
