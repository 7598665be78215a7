"""A broker of the cluster: id, endpoints, rack.

Kafka: Broker, EndPoint, SecurityProtocol, BrokerInfo.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

NO_CONTROLLER: Final = -1
"""The controller's id while no broker is the controller."""
UNKNOWN_BROKER_EPOCH: Final = -1
"""The broker epoch in a request without one."""


class SecurityProtocol(IntEnum):
    """The security protocol of a listener; the values are the ids in UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


SASL_PROTOCOLS: Final = frozenset({SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL})
"""The client authenticates with SASL."""


def format_address(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets. Kafka: Utils.formatAddress."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class EndPoint(NamedTuple):
    """The advertised address of one listener of a broker."""

    host: str
    port: int
    listener_name: str
    security_protocol: SecurityProtocol

    @property
    def connection_string(self) -> str:
        """The endpoint as in a registration, e.g. `PLAINTEXT://[::1]:9092`."""
        return f"{self.listener_name}://{format_address(self.host, self.port)}"


class Broker(NamedTuple):
    """A broker as in metadata for clients and other brokers."""

    id: int
    end_points: tuple[EndPoint, ...]
    rack: str | None = None

    def end_point(self, listener_name: str) -> EndPoint | None:
        """The endpoint of a listener, if the broker advertises it."""
        return next((point for point in self.end_points if point.listener_name == listener_name), None)


class BrokerInfo(NamedTuple):
    """The registration of a broker, in `/brokers/ids/<id>`."""

    broker: Broker
    jmx_port: int = -1
    version: int = 5
    """The version of the registration's JSON; `inter.broker.protocol.version` decides it."""
