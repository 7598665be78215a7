"""Answers wait for the flush of appends with `flush_required`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from odradek.broker.fetch.results import LogAppendResult
from odradek.broker.replica_manager.flush_waits import when_flushed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import LogAppendInfo

if TYPE_CHECKING:
    from odradek.broker.partition.partition import Partition

ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)


class Disk:
    """Hosted partitions whose flushes end when the test calls `end`."""

    def __init__(self) -> None:
        self.log = self
        self.waiting: list[tuple[int, Callable[[OSError | None], None]]] = []
        self.answered = 0

    def when_flushed(self, offset: int, callback: Callable[[OSError | None], None]) -> None:
        self.waiting.append((offset, callback))

    def wait(self, results: dict[TopicPartition, LogAppendResult]) -> None:
        def answer() -> None:
            self.answered += 1

        when_flushed(results, lambda tp: cast("Partition", self), answer)

    def end(self, error: OSError | None = None) -> None:
        self.waiting.pop(0)[1](error)


def appended(last_offset: int = 0, *, flush_required: bool = True) -> LogAppendResult:
    return LogAppendResult(
        LogAppendInfo(first_offset=0, last_offset=last_offset, max_timestamp=0, flush_required=flush_required)
    )


def test_answer_comes_when_the_last_one_is_on_the_disk() -> None:
    disk = Disk()
    disk.wait(
        {
            ONE: appended(last_offset=4),
            TWO: appended(last_offset=6),
        }
    )
    assert [offset for offset, _ in disk.waiting] == [5, 7]
    disk.end()
    assert disk.answered == 0
    disk.end()
    assert disk.answered == 1


def test_only_those_that_ask_for_it_are_waited_for() -> None:
    disk = Disk()
    disk.wait({ONE: appended(flush_required=False), TWO: appended()})
    assert len(disk.waiting) == 1
    disk.end()
    assert disk.answered == 1


def test_nothing_to_wait_for_is_answered_at_once() -> None:
    disk = Disk()
    disk.wait({})
    assert disk.answered == 1


def test_a_failed_flush_is_a_storage_error() -> None:
    disk = Disk()
    results = {ONE: appended(), TWO: appended()}
    disk.wait(results)
    disk.end(OSError(5, "input/output error"))
    disk.end()
    assert [result.error for result in results.values()] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
