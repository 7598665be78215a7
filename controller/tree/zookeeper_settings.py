"""How to reach a ZooKeeper: the settings of `zookeeper.*`, as the tree needs them.

Kafka: kafka.zk.KafkaZkClient's parameters and ZKClientConfig.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SESSION_TIMEOUT_MS: Final = 18_000
"""The default of zookeeper.session.timeout.ms, which is the default of zookeeper.connection.timeout.ms as well."""

MAX_IN_FLIGHT_REQUESTS: Final = 10
"""The default of zookeeper.max.in.flight.requests."""

REQUESTS_IN_FLIGHT_MAX: Final = 200
"""The most that may be asked for as zookeeper.max.in.flight.requests: kazoo's wake-up pipe takes a few hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperTls:
    """TLS to the servers: files in PEM, versions and ciphers in Java's names; empty or None leaves the default."""

    protocols: tuple[str, ...] = ("TLSv1.2",)
    cipher_suites: tuple[str, ...] = ()
    key_and_certificates: str | None = None
    key_password: str | None = field(default=None, repr=False)
    trusted_certificates: str | None = None
    verifies_host_name: bool = True
    checks_revocation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """Times in milliseconds. `sasl` are kazoo's SASL options."""

    hosts: str
    chroot: str = ""
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    connection_timeout_ms: int = SESSION_TIMEOUT_MS
    max_in_flight_requests: int = MAX_IN_FLIGHT_REQUESTS
    sets_acl: bool = False
    tls: ZooKeeperTls | None = None
    sasl: dict[str, str] | None = field(default=None, repr=False)


def hosts_and_chroot(connect: str) -> tuple[str, str]:
    """The servers, and the chroot ("" for none), of `host:port,host:port/chroot`; raises ValueError."""
    hosts, slash, chroot = connect.partition("/")
    hosts = ",".join(host.strip() for host in hosts.split(","))
    chroot = (slash + chroot).rstrip("/")
    if not all(hosts.split(",")) or "//" in chroot:
        raise ValueError(f"{connect}: expected host:port[,host:port][/chroot]")
    return hosts, chroot
