"""The numbers are those of Kafka's ClientQuotaManagerTest."""

from __future__ import annotations

import pytest

from odradek.broker.network.requests.request import RequestContext
from odradek.broker.quotas.client_quota_manager import EXPIRATION_CHECK_MS, ClientQuotaManager
from odradek.broker.quotas.client_sensors import INACTIVE_SENSOR_EXPIRATION_MS
from odradek.broker.quotas.quota_entity import ClientQuotaType, client_quota_entity
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.in_process_broker import FakeConnection

DEFAULT = "<default>"


class Managed:
    def __init__(self, window_count: int = 11) -> None:
        self.clock = ManualClock(1_000_000)
        self.timer = SystemTimer(self.clock)
        self.manager = ClientQuotaManager(ClientQuotaType.PRODUCE, self.clock, self.timer, window_count=window_count)

    def quota(self, user: str | None, client_id: str | None, bound: float | None) -> None:
        self.manager.update_quota(client_quota_entity(user, client_id), bound)

    def record(self, user: str, client_id: str, amount: float) -> int:
        return self.manager.record_and_get_throttle_time_ms(f"User:{user}", client_id, amount)

    def throttle(self, connection: FakeConnection, duration_ms: int) -> None:
        ctx = RequestContext(RequestHeader(ApiKey.PRODUCE, 9, 1, "p1"), connection, 0, 100)
        self.manager.throttle(ctx, duration_ms)

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()


@pytest.fixture
def managed() -> Managed:
    return Managed()


def test_nothing_is_counted_before_the_first_quota(managed: Managed) -> None:
    assert not managed.manager.is_enabled
    assert managed.record("u", "c", 10**9) == 0
    managed.manager.record_no_throttle("User:u", "c", 10**9)
    assert managed.manager.max_value_in_quota_window("User:u", "c") is None
    assert len(managed.manager.sensors) == 0
    assert managed.timer.size == 0, "no periodic work either"


def test_a_spike_is_throttled_until_the_rate_is_the_quota(managed: Managed) -> None:
    managed.quota(None, DEFAULT, 500)
    for _ in range(10):
        assert managed.record("ANONYMOUS", "unknown", 400) == 0
        managed.advance(1_000)
    managed.advance(500)
    # (10 x 400 + 2,300) / 10.5 s = 600 bytes a second, for 10.5 s: 100 / 500 x 10.5 s too long.
    assert managed.record("ANONYMOUS", "unknown", 2_300) == 2_100
    managed.advance(2_100)
    for _ in range(10):
        managed.record("ANONYMOUS", "unknown", 400)
        managed.advance(1_000)
    assert managed.record("ANONYMOUS", "unknown", 0) == 0, "the spike has left the windows"


def test_a_changed_quota_holds_for_what_was_counted_before(managed: Managed) -> None:
    managed.quota(None, "p1", 2000)
    assert managed.record("ANONYMOUS", "p1", 2500 * 11) > 0
    managed.quota(None, "p1", 3000)
    assert managed.record("ANONYMOUS", "p1", 0) == 0
    managed.quota(None, "p1", 500)
    assert managed.record("ANONYMOUS", "p1", 0) > 0
    managed.quota(None, "p1", None)
    managed.quota(None, DEFAULT, 4000)
    assert managed.record("ANONYMOUS", "p1", 0) == 0


def test_clients_share_a_quota_of_their_user(managed: Managed) -> None:
    managed.quota("userA", None, 4000)
    managed.quota("userA", "client1", 5000)
    assert managed.record("userA", "client1", 4500 * 11) == 0
    assert managed.record("userA", "client2", 4500 * 11) > 0
    assert managed.record("userA", "client3", 0) > 0
    assert managed.record("userA", "client1", 0) == 0


def test_what_is_taken_back_does_not_count(managed: Managed) -> None:
    managed.quota(None, DEFAULT, 500)
    assert managed.record("u", "c", 10_000) > 0
    managed.manager.unrecord("User:u", "c", 10_000)
    assert managed.record("u", "c", 0) == 0


def test_the_largest_value_that_is_not_throttled_for_certain() -> None:
    managed = Managed(window_count=4)
    managed.quota(DEFAULT, None, 10)
    assert managed.manager.max_value_in_quota_window("User:userA", "client1") == 30
    managed.quota(DEFAULT, None, None)
    assert managed.manager.max_value_in_quota_window("User:userA", "client1") is None


def test_a_quota_of_0_throttles_nothing_as_in_kafka(managed: Managed) -> None:
    """The throttle time is infinite, and becomes -1 as a Java int."""
    managed.quota(None, DEFAULT, 0)
    assert managed.record("u", "c", 100) == -1


def test_a_connection_is_muted_for_the_time(managed: Managed) -> None:
    managed.quota(None, DEFAULT, 500)
    connection = FakeConnection()
    managed.throttle(connection, 2_100)
    assert managed.manager.queue_size == 1
    managed.advance(2_099)
    assert connection.throttles.active
    managed.advance(1)
    assert not connection.throttles.active
    assert managed.manager.queue_size == 0


@pytest.mark.parametrize("duration_ms", [0, -1])
def test_no_time_mutes_nothing(managed: Managed, duration_ms: int) -> None:
    connection = FakeConnection()
    managed.throttle(connection, duration_ms)
    assert not connection.throttles.active
    assert managed.manager.queue_size == 0


def test_a_closed_connection_leaves_the_queue_and_the_timer(managed: Managed) -> None:
    connection = FakeConnection()
    managed.throttle(connection, 10**9)
    assert managed.timer.size == 1
    connection.throttles.close()
    assert managed.manager.queue_size == 0
    assert managed.timer.size == 0


def test_the_average_throttle_time_is_kept_by_client(managed: Managed) -> None:
    managed.throttle(FakeConnection(), 100)
    managed.throttle(FakeConnection(), 300)
    (sensors,) = managed.manager.sensors
    assert sensors.throttle_times is not None
    assert sensors.throttle_times.measure(managed.clock.monotonic_ms()) == 200


def test_silent_clients_are_forgotten(managed: Managed) -> None:
    managed.quota(None, DEFAULT, 500)
    managed.record("u", "c", 1)
    managed.advance(INACTIVE_SENSOR_EXPIRATION_MS)
    assert len(managed.manager.sensors) == 1
    managed.advance(EXPIRATION_CHECK_MS)
    assert len(managed.manager.sensors) == 0
