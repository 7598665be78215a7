"""Limits on the rate of new connections: of the broker, of each listener and of each address (KIP-612).

Each connection that is taken from a listener's queue is counted. Beyond the rate of the broker or of the listener, the
listener accepts nothing until the rate is within the limit again, for at most one window. The inter-broker listener is
not counted for the broker if there are others. Beyond the rate of its address, a connection is not counted at all; its
socket is closed after the same delay, so that the client does not come back at once.

The quotas of addresses come from the metadata tree. An address that was silent for all windows has no rate in memory:
the next connection begins with an empty one, which is what its old rate would be by then.

Kafka: ConnectionQuotas, ConnectionQuotaEntity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.timer.sampled_rate import Rate, throttle_time_ms

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.timer.clock import Clock

UNLIMITED: Final = 2**31 - 1
"""The default quota of an address. Kafka: QuotaConfigs.IP_CONNECTION_RATE_DEFAULT."""

MAX_ADDRESSES: Final = 100_000
"""Rates of addresses in memory; beyond it the one that was silent for longest is forgotten."""


class ConnectionRates:
    """The rates, and the quotas of addresses. The other limits are read from the config at every connection."""

    __slots__ = ("_broker", "_by_address", "_by_listener", "_clock", "_config", "_default_quota", "_quotas")

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._broker = self._new_rate()
        self._by_listener = {end_point.listener_name: self._new_rate() for end_point in config.listeners.bound}
        self._by_address: dict[str, tuple[Rate, int]] = {}
        """Address -> (rate, monotonic time of its last connection), the longest silent first."""
        self._default_quota: float = UNLIMITED
        self._quotas: dict[str, float] = {}

    def add_listener(self, listener_name: str) -> None:
        self._by_listener[listener_name] = self._new_rate()

    def remove_listener(self, listener_name: str) -> None:
        del self._by_listener[listener_name]

    def update_quota(self, address: str | None, rate: float | None) -> None:
        """Set the connections per second of an address, or of all without their own. None removes the quota."""
        if address is None:
            self._default_quota = UNLIMITED if rate is None else rate
        elif rate is None:
            self._quotas.pop(address, None)
        else:
            self._quotas[address] = rate

    def record_connection(self, listener_name: str, *, is_protected: bool) -> int:
        """Count a connection of the listener. Returns the time in ms that it and later ones have to wait.

        `is_protected`: the limit of the broker does not apply to the listener.
        """
        now_ms, throttle_ms = self._clock.monotonic_ms(), 0
        if not is_protected:
            throttle_ms = self._record(self._broker, self._config.max_connection_creation_rate, now_ms)
        limit = self._config.listener_limit(listener_name, "max.connection.creation.rate")
        return max(throttle_ms, self._record(self._by_listener[listener_name], limit, now_ms))

    def record_address(self, address: str, listener_name: str, *, is_protected: bool) -> int:
        """Count a connection of the address. Returns 0, or the time in ms after which its socket is to be closed.

        In the latter case the connection is not counted any more, for the listener and the broker neither.
        """
        quota = self._quotas.get(address, self._default_quota)
        if quota == UNLIMITED:
            return 0
        now_ms = self._clock.monotonic_ms()
        rate = self._rate_of(address, now_ms)
        throttle_ms = self._record(rate, quota, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
            if not is_protected:
                self._broker.record(-1, now_ms)
            self._by_listener[listener_name].record(-1, now_ms)
        return throttle_ms

    def accept_rates(self) -> tuple[float, dict[str, float]]:
        """The connections per second of the broker, as far as its limit applies to them, and of each listener."""
        now_ms = self._clock.monotonic_ms()
        return self._broker.measure(now_ms), {name: rate.measure(now_ms) for name, rate in self._by_listener.items()}

    def _record(self, rate: Rate, limit: float, now_ms: int) -> int:
        """Count a connection. Returns the delay that brings the rate back to the limit, of one window at most."""
        rate.record(1, now_ms)
        per_second = rate.measure(now_ms)
        if per_second <= limit:
            return 0
        return min(throttle_time_ms(per_second, limit, rate.window_size_ms(now_ms)), self._window_ms)

    def _rate_of(self, address: str, now_ms: int) -> Rate:
        """The rate of the address. Rates whose windows have all passed are forgotten, as are those beyond the limit."""
        rates = self._by_address
        found = rates.pop(address, None)
        rate = self._new_rate() if found is None else found[0]
        rates[address] = (rate, now_ms)
        silent_ms = self._config.quota_window_num * self._window_ms
        while True:
            first, (_, last_ms) = next(iter(rates.items()))
            if now_ms - last_ms < silent_ms and len(rates) <= MAX_ADDRESSES:
                return rate
            del rates[first]

    @property
    def _window_ms(self) -> int:
        return self._config.quota_window_size_seconds * 1000

    def _new_rate(self) -> Rate:
        return Rate(window_count=self._config.quota_window_num, window_ms=self._window_ms)
