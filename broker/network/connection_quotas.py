"""Limits on the number of connections: in total, and from one address.

A connection beyond the limit of its address is closed at once. At the broker's limit nothing is accepted until another
connection closes, except on the inter-broker listener if there are others: clients must not lock out the brokers. If
connections exceed the limit (a broker connected, or the limit was lowered), connections of clients are closed.

Kafka: ConnectionQuotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig


class ConnectionQuotas:
    """Counts the open connections. Reads the limits at every call: they can change while the broker runs."""

    __slots__ = ("_by_host", "_config", "total")

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._by_host: dict[str, int] = {}
        self.total = 0

    def may_accept(self, listener_name: str) -> bool:
        """Whether one more connection may be taken from the listener's queue."""
        return self.total < self._config.max_connections or self.is_protected(listener_name)

    def is_protected(self, listener_name: str) -> bool:
        """Whether the broker's limit does not apply to this listener."""
        return len(self._config.listeners.bound) > 1 and listener_name == self._config.listeners.inter_broker.name

    @property
    def excess(self) -> int:
        """Connections beyond the limit of the broker."""
        return max(0, self.total - self._config.max_connections)

    def limit_of(self, host: str) -> int:
        config = self._config
        return config.max_connections_per_ip_overrides.get(host, config.max_connections_per_ip)

    def acquire(self, host: str) -> bool:
        """Count a connection. Returns False, and does not count it, if its address is at its limit."""
        count = self._by_host.get(host, 0)
        if count >= self.limit_of(host):
            return False
        self._by_host[host] = count + 1
        self.total += 1
        return True

    def release(self, host: str) -> None:
        count = self._by_host[host] - 1
        if count:
            self._by_host[host] = count
        else:
            del self._by_host[host]
        self.total -= 1
