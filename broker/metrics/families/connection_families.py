"""Metrics of connections, by listener.

Apache Kafka has most of them for each of its network threads. Here one event loop serves all connections, so that each
listener has one `networkProcessor`, 0.

Kafka: Selector.SelectorMetrics, SocketServer, ConnectionQuotas.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.meters.connection_meters import ListenerMeters
from odradek.broker.metrics.family import Family, Sample, counters, gauge, gauges
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View
from odradek.timer.sampled_rate import Average

_NAME: Final = "kafka_server_socket_server_metrics_"
_OF_LISTENER: Final = "kafka.server:type=socket-server-metrics,listener="
_OF_PROCESSOR: Final = f"{_OF_LISTENER},networkProcessor="

MAX_CLIENT_SOFTWARE: Final = 100
"""Clients choose the names and versions of their software. Only so many of them are listed, the most frequent."""


def _connections(view: View) -> Iterator[Sample]:
    for listener, count in sorted(view.open_connections.items()):
        yield labelled(listener=listener, networkProcessor=0), count


def _accepted(view: View) -> Iterator[Sample]:
    listeners = view.sources.connections.listeners
    for listener in sorted(view.open_connections):
        accepted = listeners[listener].accepted if listener in listeners else 0
        yield labelled(listener=listener, networkProcessor=0), accepted


def _closed(view: View) -> Iterator[Sample]:
    listeners = view.sources.connections.listeners
    for listener, count in sorted(view.open_connections.items()):
        accepted = listeners[listener].accepted if listener in listeners else 0
        yield labelled(listener=listener, networkProcessor=0), max(0, accepted - count)


def _software(view: View) -> Iterator[Sample]:
    counts = Counter(
        (one.client_software_name, one.client_software_version, one.listener_name)
        for one in view.sources.sockets.connections
    )
    for (name, software_version, listener), count in counts.most_common(MAX_CLIENT_SOFTWARE):
        labels = labelled(
            clientSoftwareName=name, clientSoftwareVersion=software_version, listener=listener, networkProcessor=0
        )
        yield labels, count


def _of_authentications(sensor: str, description: str) -> Family:
    """`sensor`: its name in Kafka, which is that of the attribute of `AuthenticationCounts`."""
    attribute = sensor.replace("-", "_")

    def read(view: View) -> Iterator[Sample]:
        for listener, counts in sorted(view.sources.sockets.authentication_counts.items()):
            yield labelled(listener=listener, networkProcessor=0), getattr(counts, attribute)

    return counters(
        f"{_NAME}{attribute}_total",
        ("listener", "networkProcessor"),
        description,
        read,
        mbean=f"{_OF_PROCESSOR}#{sensor}-total",
    )


def _expired(view: View) -> int:
    return sum(counts.expired_connections_killed for counts in view.sources.sockets.authentication_counts.values())


def _expired_of_listeners(view: View) -> Iterator[Sample]:
    for listener, counts in sorted(view.sources.sockets.authentication_counts.items()):
        yield labelled(listener=listener, networkProcessor=0), counts.expired_connections_killed


def _accept_rates(view: View) -> Iterator[Sample]:
    for listener, rate in sorted(view.sources.sockets.accept_rates()[1].items()):
        yield labelled(listener=listener), rate


def _throttle_time(attribute: str, description: str, times: Callable[[ListenerMeters], Average]) -> Family:
    """An average in milliseconds, which is left out where nothing was throttled."""

    def read(view: View) -> Iterator[Sample]:
        for listener, meters in sorted(view.sources.connections.listeners.items()):
            average = times(meters).measure(view.services.clock.monotonic_ms())
            if not math.isnan(average):
                yield labelled(listener=listener), average

    return gauges(
        f"{_NAME}{attribute.replace('-', '_')}",
        ("listener",),
        f"{description}, on average in milliseconds; absent if there was none in the last half a minute.",
        read,
        mbean=f"{_OF_LISTENER}#{attribute}",
    )


CONNECTION_FAMILIES: Final = (
    gauges(
        f"{_NAME}connection_count",
        ("listener", "networkProcessor"),
        "Connections of clients and brokers.",
        _connections,
        mbean=f"{_OF_PROCESSOR}#connection-count",
    ),
    counters(
        f"{_NAME}connection_creation_total",
        ("listener", "networkProcessor"),
        "Connections that were accepted within the limits on their number and rate.",
        _accepted,
        mbean=f"{_OF_PROCESSOR}#connection-creation-total",
    ),
    counters(
        f"{_NAME}connection_close_total",
        ("listener", "networkProcessor"),
        "Connections of these that are closed.",
        _closed,
        mbean=f"{_OF_PROCESSOR}#connection-close-total",
    ),
    gauges(
        f"{_NAME}connection_accept_rate",
        ("listener",),
        "Connections per second that the listener accepted, as max.connection.creation.rate limits them.",
        _accept_rates,
        mbean=f"{_OF_LISTENER}#connection-accept-rate",
    ),
    gauge(
        f"{_NAME}broker_connection_accept_rate",
        "The same of the broker; without the inter-broker listener if there are others, which its limit does not "
        "apply to.",
        lambda view: view.sources.sockets.accept_rates()[0],
        mbean="kafka.server:type=socket-server-metrics#broker-connection-accept-rate",
    ),
    _throttle_time(
        "connection-accept-throttle-time",
        "How long the listener had to wait because connections came too fast",
        lambda meters: meters.throttle_times,
    ),
    _throttle_time(
        "ip-connection-accept-throttle-time",
        "How long the close of a connection was put off because its address opened too many a second",
        lambda meters: meters.ip_throttle_times,
    ),
    gauges(
        f"{_NAME}connections_software",
        ("clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor"),
        f"Connections by the client software that they name; the {MAX_CLIENT_SOFTWARE} most frequent.",
        _software,
        mbean=(
            "kafka.server:type=socket-server-metrics,clientSoftwareName=,clientSoftwareVersion=,listener=,"
            "networkProcessor=#connections"
        ),
    ),
    _of_authentications("successful-authentication", "Connections that authenticated with SASL, or with TLS alone."),
    _of_authentications("failed-authentication", "Connections whose TLS handshake or authentication with SASL failed."),
    _of_authentications("successful-reauthentication", "Sessions that were renewed by another authentication."),
    _of_authentications("failed-reauthentication", "Sessions whose renewal failed."),
    _of_authentications(
        "successful-authentication-no-reauth", "Authentications of clients that cannot renew their sessions."
    ),
    gauge(
        "kafka_network_socketserver_expiredconnectionskilledcount",
        "Connections that were closed because their session had ended.",
        _expired,
        mbean="kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
    ),
    gauges(
        f"{_NAME}expired_connections_killed_count",
        ("listener", "networkProcessor"),
        "The same by listener, of those with TLS or SASL.",
        _expired_of_listeners,
        mbean=f"{_OF_PROCESSOR}#expired-connections-killed-count",
    ),
)
