from __future__ import annotations

from typing import cast

from odradek.broker.network.listeners import throttled_sockets
from odradek.broker.network.listeners.throttled_sockets import MAX_THROTTLED_SOCKETS, ROUND_MS, ThrottledSockets
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


class Socket:
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Throttled:
    def __init__(self, fd_limit: int = 1_000_000) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.sockets = ThrottledSockets(self.timer, fd_limit)

    def add(self, throttle_ms: int) -> Socket:
        added = Socket()
        self.sockets.add(cast("throttled_sockets.socket.socket", added), throttle_ms)
        return added

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()


def test_each_is_closed_at_the_end_of_the_round_in_which_its_time_is_over() -> None:
    throttled = Throttled()
    late, early = throttled.add(ROUND_MS + 1), throttled.add(1)
    throttled.advance(ROUND_MS - 1)
    assert (late.is_closed, early.is_closed) == (False, False)
    throttled.advance(1)
    assert (late.is_closed, early.is_closed) == (False, True)
    throttled.advance(ROUND_MS - 1)
    assert not late.is_closed
    throttled.advance(1)
    assert late.is_closed
    assert throttled.timer.size == 0


def test_beyond_the_limit_the_one_that_waited_for_longest_is_closed() -> None:
    for fd_limit, limit in ((1_000_000, MAX_THROTTLED_SOCKETS), (200, 20), (5, 1)):
        throttled = Throttled(fd_limit)
        added = [throttled.add(1000) for _ in range(limit + 3)]
        assert [each.is_closed for each in added] == [True] * 3 + [False] * limit
        assert throttled.timer.size == limit


def test_all_are_closed_at_a_stop() -> None:
    throttled = Throttled()
    added = [throttled.add(1000) for _ in range(3)]
    throttled.sockets.close()
    assert all(each.is_closed for each in added)
    assert throttled.timer.size == 0
