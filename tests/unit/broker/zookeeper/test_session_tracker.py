from __future__ import annotations

import pytest

from odradek.broker.zookeeper.session_tracker import SessionTracker
from odradek.controller.tree.service_store import StoredSession
from odradek.timer.clock import ManualClock

TICK_MS = 500
PASSWORD = b"p" * 16


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(10_000)


@pytest.fixture
def tracker(clock: ManualClock) -> SessionTracker:
    tracker = SessionTracker(clock, TICK_MS)
    tracker.track(StoredSession(7, 1200, PASSWORD))
    return tracker


def test_a_session_ends_at_the_tick_after_its_time_out(tracker: SessionTracker, clock: ManualClock) -> None:
    clock.advance(1499)
    assert tracker.take_expired() == []
    clock.advance(1)
    assert tracker.take_expired() == [7]
    assert tracker.take_expired() == []
    assert not tracker.touch(7, 1200)
    assert tracker.find(7, PASSWORD) is None


def test_a_deadline_on_a_tick_is_the_next_one(clock: ManualClock) -> None:
    tracker = SessionTracker(clock, TICK_MS)
    tracker.track(StoredSession(7, 1000, PASSWORD))
    clock.advance(1000)
    assert tracker.take_expired() == []
    clock.advance(500)
    assert tracker.take_expired() == [7]


def test_what_is_heard_puts_the_end_off(tracker: SessionTracker, clock: ManualClock) -> None:
    clock.advance(1400)
    assert tracker.touch(7, 3000)
    clock.advance(3000)
    assert tracker.take_expired() == []
    assert tracker.by_deadline() == {100: [7]}
    clock.advance(100)
    assert tracker.take_expired() == [7]


def test_a_session_is_found_by_its_password_alone(tracker: SessionTracker) -> None:
    found = tracker.find(7, PASSWORD)
    assert found is not None
    assert found.timeout_ms == 1200
    assert tracker.find(7, bytes(16)) is None
    assert tracker.find(7, None) is None
    assert tracker.find(8, PASSWORD) is None
    assert len(tracker) == 1
    tracker.remove(7)
    assert len(tracker) == 0
