from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.network.listeners import connection_rates
from odradek.broker.network.listeners.connection_rates import ConnectionRates
from odradek.timer.clock import ManualClock

CLIENTS, BROKERS = "CLIENTS", "BROKERS"
HOST = "192.0.2.1"


class Rates:
    """The rates of a broker with two listeners; time passes as connections wait."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock(1_000_000)
        self.config = BrokerConfig(
            {
                "listeners": "CLIENTS://:9092,BROKERS://:9093",
                "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
                "inter.broker.listener.name": "BROKERS",
                **settings,
            }
        )
        self.rates = ConnectionRates(self.config, self.clock)

    def connect(self, listener: str = CLIENTS) -> int:
        return self.rates.record_connection(listener, is_protected=listener == BROKERS)

    def connect_from(self, host: str, listener: str = CLIENTS) -> int:
        return self.rates.record_address(host, listener, is_protected=listener == BROKERS)

    def seconds_of(self, count: int, listener: str = CLIENTS) -> float:
        """The time that `count` connections take which come as soon as they may."""
        before_ms = self.clock.monotonic_ms()
        for _ in range(count):
            self.clock.advance(self.connect(listener))
        return (self.clock.monotonic_ms() - before_ms) / 1000


LIMIT = "max.connection.creation.rate"


def test_nothing_is_throttled_without_a_limit() -> None:
    rates = Rates()
    assert rates.seconds_of(10_000) == 0
    assert not any(rates.connect_from(HOST) for _ in range(10_000))


@pytest.mark.parametrize("key", [LIMIT, f"listener.name.clients.{LIMIT}"])
def test_a_broker_or_a_listener_accepts_as_fast_as_it_may(key: str) -> None:
    rates = Rates(**{key: "20"})
    assert rates.seconds_of(200) == 0, "ten of eleven windows count as passed"
    assert 20 <= rates.seconds_of(400) <= 23


def test_the_delay_is_that_of_the_longer_one_and_never_more_than_a_window() -> None:
    rates = Rates(**{LIMIT: "100", f"listener.name.clients.{LIMIT}": "1"})
    assert [rates.connect() for _ in range(12)] == [0] * 10 + [1000, 1000]
    assert Rates(**{LIMIT: "0"}).connect() == 1000
    assert Rates(**{LIMIT: "0", "quota.window.size.seconds": "2"}).connect() == 2000


def test_a_connection_over_the_limit_waits_until_the_rate_is_the_limit_again() -> None:
    rates = Rates(**{LIMIT: "20"})
    for _ in range(200):
        assert rates.connect() == 0
    assert rates.connect() == 50
    rates.clock.advance(50)
    assert rates.connect() == 50


def test_the_listener_of_brokers_does_not_count_for_the_broker() -> None:
    rates = Rates(**{LIMIT: "1"})
    rates.config.apply_dynamic(broker={f"listener.name.brokers.{LIMIT}": "2147483647"}, default={})
    assert rates.seconds_of(100, BROKERS) == 0
    assert rates.seconds_of(10, CLIENTS) == 0
    assert rates.connect(CLIENTS) == 1000


def test_limits_that_change_count_for_the_next_connection() -> None:
    rates = Rates(**{LIMIT: "20"})
    for _ in range(201):
        last_ms = rates.connect()
    assert last_ms == 50
    rates.config.apply_dynamic(broker={}, default={LIMIT: "40"})
    assert rates.connect() == 0
    rates.config.apply_dynamic(broker={}, default={f"listener.name.clients.{LIMIT}": "10"})
    assert rates.connect() == 1000


def test_an_address_over_its_quota_is_turned_away_and_not_counted() -> None:
    rates = Rates(**{LIMIT: "2"})
    rates.rates.update_quota(HOST, 1)
    for _ in range(10):
        assert (rates.connect(), rates.connect_from(HOST)) == (0, 0)
    for _ in range(100):
        assert (rates.connect(), rates.connect_from(HOST)) == (0, 1000)
    for _ in range(10):
        assert (rates.connect(), rates.connect_from("192.0.2.2")) == (0, 0)
    assert rates.connect() == 500
    rates.clock.advance(9900)
    assert rates.connect_from(HOST) == 100, "what was turned away is not in the rate of the address"


def test_the_quota_of_an_address_comes_before_the_default() -> None:
    rates = Rates()
    rates.rates.update_quota(None, 0)
    rates.rates.update_quota(HOST, 5)
    assert (rates.connect_from(HOST), rates.connect_from("192.0.2.2")) == (0, 1000)
    rates.rates.update_quota(HOST, None)
    assert (rates.connect_from(HOST), rates.connect_from("192.0.2.2")) == (1000, 1000)
    rates.rates.update_quota(None, None)
    assert (rates.connect_from(HOST), rates.connect_from("192.0.2.2")) == (0, 0)


def test_a_silent_address_takes_no_memory() -> None:
    rates = Rates()
    rates.rates.update_quota(None, 1)
    for number in range(1000):
        rates.connect_from(f"10.0.{number // 256}.{number % 256}")
    rates.clock.advance(10_999)
    rates.connect_from(HOST)
    assert remembered(rates) == 1001
    rates.clock.advance(1)
    rates.connect_from(HOST)
    assert remembered(rates) == 1


def test_a_rate_that_was_forgotten_is_one_whose_windows_have_passed() -> None:
    kept, forgotten = Rates(), Rates()
    for rates in (kept, forgotten):
        rates.rates.update_quota(None, 1)
        for _ in range(11):
            last_ms = rates.connect_from(HOST)
        assert last_ms == 1000
        rates.clock.advance(11_000)
    forgotten.connect_from("192.0.2.2")
    assert remembered(forgotten) == 1
    assert [kept.connect_from(HOST) for _ in range(11)] == [forgotten.connect_from(HOST) for _ in range(11)]


def test_many_addresses_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_rates, "MAX_ADDRESSES", 10)
    rates = Rates()
    rates.rates.update_quota(None, 1)
    for number in range(100):
        rates.connect_from(HOST)
        rates.connect_from(f"10.0.0.{number}")
    assert remembered(rates) == 10
    assert rates.connect_from(HOST) == 1000, "an address that is not silent is not forgotten"


def remembered(rates: Rates) -> int:
    return len(rates.rates._by_address)
