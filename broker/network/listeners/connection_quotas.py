"""Limits on connections: their number in total, by listener and by address, and the rate of new ones.

A connection beyond the limit of its address is closed at once. At the limit of the broker or of a listener, the
listener accepts nothing until another connection closes. The broker's limit does not apply to the inter-broker listener
if there are others: clients must not lock out the brokers. If connections exceed the broker's limit (a broker
connected, or the limit was lowered), connections of clients are closed, in the order of `ConnectionPriorities`.

`max.connections.per.ip.overrides` and the quotas of addresses may name hosts. As in Apache Kafka, a host stands for the
first address of its name, IPv4 before IPv6. The names are resolved at the start and when the config changes.

Kafka: ConnectionQuotas.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.listeners.connection_rates import ConnectionRates
from odradek.broker.network.sockets.host_addresses import HostAddresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)


class ActiveConnection(Protocol):
    """The part of a connection that its priority depends on. Implemented by `Connection`."""

    last_active_ms: int


ConnectionT = TypeVar("ConnectionT", bound=ActiveConnection)


class ConnectionPriorities(Generic[ConnectionT]):
    """Which connections make room for others: those that read nothing more, then those that were silent for longest.

    `last_active_ms` is written with each request, which must not pay for an order. So connections are sorted when one
    has to be closed, and the rest is kept for the next time. What was active or came since then is younger than all
    that was not: it takes part when the others are used up. A connection that is being closed is not closed again.

    Kafka: Selector.lowestPriorityChannel.
    """

    __slots__ = ("_by_activity", "_ended", "closing")

    def __init__(self) -> None:
        self.closing: set[ConnectionT] = set()
        """Connections that are counted until the loop has closed them."""
        self._ended: dict[ConnectionT, None] = {}
        """Connections from which nothing more is read, with requests or answers left."""
        self._by_activity: OrderedDict[ConnectionT, int] = OrderedDict()
        """Connection -> its `last_active_ms` when they were sorted, the longest silent first."""

    def client_ended(self, connection: ConnectionT) -> None:
        """The client has ended, or a request of it ends the connection when earlier ones are answered."""
        if connection not in self.closing:
            self._ended[connection] = None

    def begins_to_close(self, connection: ConnectionT) -> None:
        self._ended.pop(connection, None)
        self._by_activity.pop(connection, None)
        self.closing.add(connection)

    def closed(self, connection: ConnectionT) -> None:
        self._ended.pop(connection, None)
        self._by_activity.pop(connection, None)
        self.closing.discard(connection)

    def lowest(self, clients: Iterable[ConnectionT], is_protected: Callable[[ConnectionT], bool]) -> ConnectionT | None:
        """The connection that is to be closed next, which has to begin to close before the next call.

        `clients`: the open connections, read if they have to be sorted. None if all are protected or being closed.
        """
        for connection in self._ended:
            if not is_protected(connection):
                return connection
        found = self._longest_silent(is_protected)
        if found is None:
            active = [(client, client.last_active_ms) for client in clients if client not in self.closing]
            self._by_activity = OrderedDict(sorted(active, key=lambda entry: entry[1]))
            found = self._longest_silent(is_protected)
        return found

    def _longest_silent(self, is_protected: Callable[[ConnectionT], bool]) -> ConnectionT | None:
        while self._by_activity:
            connection, active_ms = self._by_activity.popitem(last=False)
            if connection.last_active_ms == active_ms and not is_protected(connection):
                return connection
        return None


class ConnectionQuotas:
    """Counts the open connections. Reads the limits at every call: they can change while the broker runs."""

    __slots__ = (
        "_addresses",
        "_by_host",
        "_by_listener",
        "_config",
        "_is_resolving",
        "_overrides",
        "_rates",
        "_wanted",
        "total",
    )

    def __init__(self, config: BrokerConfig, clock: Clock, io_pool: IoPool) -> None:
        self._config = config
        self._addresses = HostAddresses(io_pool)
        self._rates = ConnectionRates(config, clock)
        self._by_host: dict[str, int] = {}
        self._by_listener = {end_point.listener_name: 0 for end_point in config.listeners.bound}
        self._wanted: Mapping[str, int] = {}
        """The overrides as configured, which were resolved last or are being resolved."""
        self._overrides: Mapping[str, int] = {}
        """The limits of single addresses."""
        self._is_resolving = False
        self.total = 0

    # -- hosts that configs name

    async def start(self) -> None:
        """Resolve the overrides of the start. Raises: StartupError for a host name without an address."""
        resolved: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()

        def done(error: OSError | None) -> None:
            if not resolved.done():  # else the start was given up
                resolved.set_result(error)

        self._resolve_overrides(done)
        error = await resolved
        if error is not None:
            raise StartupError(str(error)) from error

    def overrides_changed(self) -> None:
        """Resolve overrides that have changed. With a host name that has no address, the old overrides stay."""

        def done(error: OSError | None) -> None:
            if error is not None:
                logger.error("%s; the limits stay as they were", error)

        if self._config.max_connections_per_ip_overrides != self._wanted:
            self._resolve_overrides(done)

    def _resolve_overrides(self, done: Callable[[OSError | None], None]) -> None:
        self._wanted = self._config.max_connections_per_ip_overrides
        if not self._is_resolving:
            self._is_resolving = True
            self._resolve_next(self._wanted, iter(self._wanted), {}, done)

    def _resolve_next(
        self,
        wanted: Mapping[str, int],
        left: Iterator[str],
        found: dict[str, str],
        done: Callable[[OSError | None], None],
    ) -> None:
        """Resolve the next one of the `wanted` hosts; `found`: the addresses of those before `left`."""
        if wanted is not self._wanted:  # changed again meanwhile
            wanted, left, found = self._wanted, iter(self._wanted), {}
        host = next(left, None)
        if host is None:
            self._is_resolving = False
            self._overrides = {found[host]: limit for host, limit in wanted.items()}
            done(None)
            return

        def resolved(result: str | OSError) -> None:
            if not isinstance(result, OSError):
                found[host] = result
            elif wanted is self._wanted:
                self._is_resolving = False
                done(OSError(f"max.connections.per.ip.overrides: {result}"))
                return
            self._resolve_next(wanted, left, found, done)

        self._addresses.resolve(host, resolved)

    def update_ip_connection_rate_quota(self, ip: str | None, rate: float | None) -> None:
        """Set the quota of an address or host (None: of all that have none of their own); a `rate` of None removes it.

        Kafka: ConnectionQuotas.updateIpConnectionRateQuota, IpConfigHandler.
        """

        def resolved(address: str | OSError) -> None:
            if isinstance(address, OSError):
                logger.error("Unable to resolve address %s; its connection_creation_rate is not applied", address)
            else:
                self._rates.update_quota(address, rate)

        if ip is None:
            self._rates.update_quota(None, rate)
        else:
            self._addresses.resolve(ip, resolved)

    # -- listeners that are opened and closed while the broker runs

    def add_listener(self, listener_name: str) -> None:
        self._by_listener.setdefault(listener_name, 0)
        self._rates.add_listener(listener_name)

    def remove_listener(self, listener_name: str) -> None:
        """Remove a listener without connections."""
        del self._by_listener[listener_name]
        self._rates.remove_listener(listener_name)

    # -- connections

    def may_accept(self, listener_name: str) -> bool:
        """Whether one more connection may be taken from the listener's queue."""
        if self._by_listener[listener_name] >= self._config.listener_limit(listener_name, "max.connections"):
            return False
        return self.total < self._config.max_connections or self.is_protected(listener_name)

    def is_protected(self, listener_name: str) -> bool:
        """Whether the broker's limits do not apply to this listener."""
        return len(self._by_listener) > 1 and listener_name == self._config.listeners.inter_broker.name

    @property
    def excess(self) -> int:
        """Connections beyond the limit of the broker, 0 or less if there are none."""
        return self.total - self._config.max_connections

    @property
    def unprotected(self) -> int:
        """Connections to which the limit of the broker applies."""
        return sum(count for name, count in self._by_listener.items() if not self.is_protected(name))

    def limit_of(self, host: str) -> int:
        return self._overrides.get(host, self._config.max_connections_per_ip)

    def record_connection(self, listener_name: str) -> int:
        """Count a new connection of the listener. Returns the time in ms that it and those after it have to wait."""
        return self._rates.record_connection(listener_name, is_protected=self.is_protected(listener_name))

    def record_address(self, host: str, listener_name: str) -> int:
        """Count a new connection of the address. Returns 0, or the time in ms after which it is to be closed."""
        return self._rates.record_address(host, listener_name, is_protected=self.is_protected(listener_name))

    def accept_rates(self) -> tuple[float, dict[str, float]]:
        """The connections per second of the broker, as far as its limit applies to them, and of each listener."""
        return self._rates.accept_rates()

    def acquire(self, host: str, listener_name: str) -> bool:
        """Add a connection. Returns False, and does not add it, if its address is at its limit."""
        count = self._by_host.get(host, 0)
        if count >= self.limit_of(host):
            return False
        self._by_host[host] = count + 1
        self._by_listener[listener_name] += 1
        self.total += 1
        return True

    def release(self, host: str, listener_name: str) -> None:
        count = self._by_host[host] - 1
        if count:
            self._by_host[host] = count
        else:
            del self._by_host[host]
        self._by_listener[listener_name] -= 1
        self.total -= 1
