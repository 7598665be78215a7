"""Answers that wait for a flush: with ``flush.messages`` a producer is answered when its records are on the disk.

The appends of many requests share one fsync (group commit): each log calls back when the records are flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.fetch.results import LogAppendResult
    from odradek.broker.partition.partition import Partition
    from odradek.protocol.topic_partition import TopicPartition


def when_flushed(
    results: Mapping[TopicPartition, LogAppendResult],
    hosted: Callable[[TopicPartition], Partition | None],
    answer: Callable[[], None],
) -> None:
    """Call `answer` when every append with `flush_required` is on the disk. A failed flush sets KAFKA_STORAGE_ERROR."""
    waiting = 1

    def flushed(result: LogAppendResult | None, error: OSError | None) -> None:
        nonlocal waiting
        if result is not None and error is not None:
            result.error = ErrorCode.KAFKA_STORAGE_ERROR
        waiting -= 1
        if not waiting:
            answer()

    for topic_partition, result in results.items():
        partition = hosted(topic_partition)
        if result.info.flush_required and partition is not None and partition.log is not None:
            waiting += 1
            partition.log.when_flushed(result.required_offset, partial(flushed, result))
    flushed(None, None)
