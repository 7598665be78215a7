"""The connection settings of `zookeeper.*`.

Kafka: KafkaZkClient.createZkClient, ZkConfigs, ZKClientConfig.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from odradek.controller.tree.metadata_tree import BadArguments, check_path
from odradek.protocol.java_split import java_trim

SESSION_TIMEOUT_MS: Final = 18_000
"""The default of zookeeper.session.timeout.ms and zookeeper.connection.timeout.ms."""

MAX_IN_FLIGHT_REQUESTS: Final = 10
"""The default of zookeeper.max.in.flight.requests."""

REQUESTS_IN_FLIGHT_MAX: Final = 200
"""Upper limit of zookeeper.max.in.flight.requests: kazoo blocks when its wake-up pipe is full, at a few hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperTls:
    """TLS to the servers: PEM files, Java's names of protocols and ciphers; empty or None: the default."""

    protocols: tuple[str, ...] = ("TLSv1.2",)
    cipher_suites: tuple[str, ...] = ()
    key_and_certificates: str | None = None
    key_password: str | None = field(default=None, repr=False)
    trusted_certificates: str | None = None
    verifies_host_name: bool = True
    checks_revocation: bool = False


class SaslExchange(Protocol):
    """The client's side of one authentication."""

    is_complete: bool

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        """The next response; None: nothing more is sent. The first challenge is empty. May block: called in the
        connection's thread. An exception ends the connection; its message has no secret.
        """


ZooKeeperSasl: TypeAlias = "dict[str, str] | Callable[[str], SaslExchange]"
"""Either kazoo's options of a mechanism that it has, or what makes the exchange with a server by the server's host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """Times in milliseconds. `sasl`: None for no authentication."""

    hosts: str
    chroot: str = ""
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    connection_timeout_ms: int = SESSION_TIMEOUT_MS
    max_in_flight_requests: int = MAX_IN_FLIGHT_REQUESTS
    sets_acl: bool = False
    tls: ZooKeeperTls | None = None
    sasl: ZooKeeperSasl | None = field(default=None, repr=False)


def hosts_and_chroot(connect: str) -> tuple[str, str]:
    """The servers and the chroot ("" for none) of `host:port,host:port/chroot`. Raises ValueError.

    ZooKeeper: ConnectStringParser.
    """
    listed, slash, path = connect.partition("/")
    hosts = [java_trim(host) for host in listed.split(",")]
    chroot = slash + path if path else ""
    if not any(hosts):
        raise ValueError(f"{connect}: expected host:port[,host:port][/chroot]")
    try:
        check_path(chroot or "/")
    except BadArguments as error:
        raise ValueError(f"{connect}: {error}") from error
    return ",".join(filter(None, hosts)), chroot
