"""Limits on the number of connections: in total, and from one address.

A connection beyond the limit of its address is closed at once. At the broker's limit nothing is accepted until another
connection closes, except on the inter-broker listener if there are others: clients must not lock out the brokers. If
connections exceed the limit (a broker connected, or the limit was lowered), connections of clients are closed.

`max.connections.per.ip.overrides` may name hosts. As in Apache Kafka, a host stands for the first address of its name,
IPv4 before IPv6. The names are resolved at the start and when the config changes.

Kafka: ConnectionQuotas.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.machine.startup_error import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.storage.disk.ports import IoPool

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
"""What an empty host name stands for (InetAddress.getByName)."""


class UnknownHostError(OSError):
    """A host name without an address."""


def address_of(host: str) -> str:
    """The address of a host, as `getpeername` writes it. Waits for name servers. Raises: UnknownHostError."""
    try:
        found = socket.getaddrinfo(host or LOOPBACK, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: a label of more than 63 characters
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnknownHostError(f"max.connections.per.ip.overrides: {host}: {reason}") from error
    address = ipaddress.ip_address(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _by_address(overrides: Mapping[str, int]) -> dict[str, int]:
    return {address_of(host): limit for host, limit in overrides.items()}


class ConnectionQuotas:
    """Counts the open connections. Reads the limits at every call: they can change while the broker runs."""

    __slots__ = ("_by_host", "_config", "_overrides", "_resolved", "total")

    def __init__(self, config: BrokerConfig) -> None:
        """Raises: StartupError if `max.connections.per.ip.overrides` has a host name without an address."""
        self._config = config
        self._by_host: dict[str, int] = {}
        self._resolved = config.max_connections_per_ip_overrides
        """The overrides as configured, which were resolved last or are being resolved."""
        try:
            self._overrides = _by_address(self._resolved)
        except UnknownHostError as error:
            raise StartupError(str(error)) from error
        self.total = 0

    def resolve_overrides(self, io_pool: IoPool) -> None:
        """Resolve overrides that have changed. With a host name that has no address, the old overrides stay."""
        wanted = self._config.max_connections_per_ip_overrides
        if wanted == self._resolved:
            return
        self._resolved = wanted

        def done(result: dict[str, int] | OSError) -> None:
            if self._resolved is not wanted:
                return  # they have changed again meanwhile
            if isinstance(result, OSError):
                logger.error("%s; the limits are what they were", result)
            else:
                self._overrides = result

        io_pool.submit(partial(_by_address, wanted), done)

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
        return self._overrides.get(host, self._config.max_connections_per_ip)

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
