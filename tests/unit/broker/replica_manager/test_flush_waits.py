"""Answers wait for the flush of what was appended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from odradek.broker.fetch.results import LogAppendResult
from odradek.broker.replica_manager.flush_waits import FlushWaits
from odradek.protocol.errors import ErrorCode
from odradek.storage.append_info import LogAppendInfo

if TYPE_CHECKING:
    from odradek.broker.partition.partition import Partition


class Disk:
    """A partition and its log, whose flushes end when the test calls `end`."""

    def __init__(self) -> None:
        self.log = self
        self.waiting: list[tuple[int, Callable[[OSError | None], None]]] = []
        self.answered = 0

    def when_flushed(self, offset: int, callback: Callable[[OSError | None], None]) -> None:
        self.waiting.append((offset, callback))

    def wait(self, *results: LogAppendResult) -> None:
        waits = FlushWaits()
        for result in results:
            waits.wait_for(result, cast("Partition", self))
        waits.when_done(self.answer)

    def answer(self) -> None:
        self.answered += 1

    def end(self, error: OSError | None = None) -> None:
        self.waiting.pop(0)[1](error)


def appended(last_offset: int = 0) -> LogAppendResult:
    return LogAppendResult(LogAppendInfo(first_offset=0, last_offset=last_offset, max_timestamp=0, flush_required=True))


def test_answer_comes_when_the_last_one_is_on_the_disk() -> None:
    disk = Disk()
    disk.wait(appended(last_offset=4), appended(last_offset=6))
    assert [offset for offset, _ in disk.waiting] == [5, 7]
    disk.end()
    assert disk.answered == 0
    disk.end()
    assert disk.answered == 1


def test_flushes_that_end_while_others_are_appended_do_not_answer() -> None:
    disk, waits = Disk(), FlushWaits()
    waits.wait_for(appended(), cast("Partition", disk))
    disk.end()
    assert disk.answered == 0
    waits.when_done(disk.answer)
    assert disk.answered == 1


def test_a_failed_flush_is_a_storage_error() -> None:
    disk = Disk()
    results = [appended(), appended()]
    disk.wait(*results)
    disk.end(OSError(5, "input/output error"))
    disk.end()
    assert [result.error for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_a_partition_that_is_offline_when_the_flush_begins_is_a_storage_error() -> None:
    disk, waits, result = Disk(), FlushWaits(), appended()
    waits.wait_for(result, None)
    waits.when_done(disk.answer)
    assert (disk.answered, result.error) == (1, ErrorCode.KAFKA_STORAGE_ERROR)
