from __future__ import annotations

import pytest

from odradek.broker.network.requests.request import RequestContext, RequestTimes
from odradek.broker.quotas.quota_entity import client_quota_entity
from odradek.broker.quotas.request_quota_manager import ClientRequestQuotaManager
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.in_process_broker import FakeConnection
from tests.unit.broker.network.requests.test_request_observer import Recorder


class Managed:
    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.manager = ClientRequestQuotaManager(self.clock, SystemTimer(self.clock))

    def request(self, took_ms: int) -> RequestContext:
        ctx = RequestContext(RequestHeader(ApiKey.METADATA, 9, 1, "c"), FakeConnection(), 0, 100)
        ctx.times = RequestTimes(Recorder(), self.clock.monotonic_ns, self.clock.monotonic_ns())
        self.clock.advance(took_ms)
        ctx.times.end_step()
        return ctx


@pytest.fixture
def managed() -> Managed:
    managed = Managed()
    managed.manager.update_quota(client_quota_entity(None, "<default>"), 1.0)
    return managed


def test_one_percent_of_the_loop(managed: Managed) -> None:
    for _ in range(10):
        assert managed.manager.charge(managed.request(4)) == 0
        managed.clock.advance(996)
    managed.clock.advance(500)
    # 40 ms and 67 ms in 10.563 s are 1.013 percent: 1.3 percent of that time too much.
    assert managed.manager.charge(managed.request(67)) == 137


def test_the_throttle_time_is_one_window_at_most(managed: Managed) -> None:
    assert managed.manager.charge(managed.request(900)) == 1_000


def test_what_follows_the_answer_counts_for_the_next_request(managed: Managed) -> None:
    ctx = managed.request(50)
    assert managed.manager.charge(ctx) == 0
    assert ctx.times is not None
    assert ctx.times.is_charged
    ctx.times.begin_step()
    managed.clock.advance(60)
    ctx.times.end_step()
    managed.manager.charge_rest(ctx)
    assert managed.manager.charge(managed.request(1)) > 0


def test_exempt_requests_are_counted_for_nobody(managed: Managed) -> None:
    ctx = managed.request(900)
    managed.manager.charge_exempt(ctx)
    managed.manager.charge_rest(ctx)
    assert managed.manager.exempt_rate.measure(managed.clock.monotonic_ms()) == pytest.approx(90 / 30)
    assert managed.manager.charge(managed.request(1)) == 0


def test_a_request_without_times_is_not_charged(managed: Managed) -> None:
    ctx = RequestContext(RequestHeader(ApiKey.METADATA, 9, 1, "c"), FakeConnection(), 0, 100)
    assert managed.manager.charge(ctx) == 0
    managed.manager.charge_exempt(ctx)
    managed.manager.charge_rest(ctx)
    assert len(managed.manager.sensors) == 0
