"""High watermarks are written from the first LeaderAndIsr until the shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from odradek.broker.partition.high_watermark_checkpoints import HighWatermarkCheckpoints
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

if TYPE_CHECKING:
    from odradek.storage.manager.log_manager import LogManager

INTERVAL_MS = 5_000


class Written:
    """A log manager that only counts the checkpoints."""

    def __init__(self) -> None:
        self.count = 0
        self.error: Exception | None = None
        self.clock = ManualClock(0)
        self.timer = SystemTimer(self.clock)
        self.checkpoints = HighWatermarkCheckpoints(cast("LogManager", self), self.timer, INTERVAL_MS)

    def checkpoint_high_watermarks(self) -> None:
        self.count += 1
        if self.error is not None:
            raise self.error

    def advance(self, ms: int) -> int:
        self.clock.advance(ms)
        self.timer.advance()
        return self.count


@pytest.fixture
def written() -> Written:
    return Written()


def test_nothing_is_written_before_the_partitions_are_known(written: Written) -> None:
    assert written.advance(10 * INTERVAL_MS) == 0
    written.checkpoints.finish()
    assert written.count == 0


def test_one_is_written_each_interval(written: Written) -> None:
    written.checkpoints.begin()
    written.checkpoints.begin()
    assert written.advance(INTERVAL_MS - 1) == 0
    assert written.advance(1) == 1
    assert written.advance(INTERVAL_MS) == 2


def test_the_last_one_is_written_at_the_end_and_no_more(written: Written) -> None:
    written.checkpoints.begin()
    written.checkpoints.finish()
    assert written.count == 1
    assert written.advance(10 * INTERVAL_MS) == 1


def test_one_that_fails_is_not_the_last(written: Written) -> None:
    written.checkpoints.begin()
    written.error = ValueError("a bug")
    with pytest.raises(ExceptionGroup):
        written.advance(INTERVAL_MS)
    written.error = None
    assert written.advance(INTERVAL_MS) == 2
