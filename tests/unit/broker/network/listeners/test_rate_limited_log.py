from __future__ import annotations

import logging

import pytest

from odradek.broker.network.listeners.rate_limited_log import INTERVAL_MS, MAX_KINDS, RateLimitedLog
from odradek.timer.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(5)


@pytest.fixture
def log(clock: ManualClock) -> RateLimitedLog:
    return RateLimitedLog(logging.getLogger("test"), clock)


def test_flood_of_one_kind_is_one_line_and_a_count(
    log: RateLimitedLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        log.warning("bad", "bad thing %d", number)
    assert caplog.messages == ["bad thing 0"]
    clock.advance(INTERVAL_MS)
    log.warning("bad", "bad thing %d", 1000)
    assert caplog.messages[1:] == ["bad thing 1000 (999 more like this since the last line)"]


def test_kinds_do_not_silence_each_other(log: RateLimitedLog, caplog: pytest.LogCaptureFixture) -> None:
    log.warning("one", "first")
    log.warning("two", "second")
    assert caplog.messages == ["first", "second"]


def test_number_of_kinds_remembered_is_bounded(log: RateLimitedLog) -> None:
    for number in range(MAX_KINDS * 3):
        log.warning(number, "x")
    assert len(log._kinds) <= MAX_KINDS
