"""A broker as the cluster knows it: its id, where it listens, its rack.

Kafka: kafka.cluster.Broker and EndPoint, and to SecurityProtocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

NO_CONTROLLER: Final = -1
"""In place of a broker's id, where no broker is the controller."""
UNKNOWN_BROKER_EPOCH: Final = -1
"""The broker epoch of a request that names none."""


class SecurityProtocol(IntEnum):
    """How a listener protects a connection; the values are the ids UpdateMetadata carries."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(frozen=True, slots=True)
class EndPoint:
    """Where clients reach a broker through one listener."""

    host: str
    port: int
    listener_name: str
    security_protocol: SecurityProtocol

    @property
    def connection_string(self) -> str:
        """The endpoint as registrations write it, e.g. `PLAINTEXT://[::1]:9092`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as clients and other brokers are told of it."""

    id: int
    end_points: tuple[EndPoint, ...]
    rack: str | None = None

    def end_point(self, listener_name: str) -> EndPoint | None:
        """The endpoint of a listener, if the broker advertises it."""
        return next((point for point in self.end_points if point.listener_name == listener_name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """What a broker writes about itself in its registration."""

    broker: Broker
    jmx_port: int = -1
    version: int = 5
    """Of the registration's layout, as the inter-broker protocol lays it down."""
