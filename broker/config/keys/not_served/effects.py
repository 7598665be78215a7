"""The effect of each key: it acts, the start refuses it, or it has no effect and the start logs a warning.

A key that this module does not name acts: code reads it, which a test checks. Keys that protect data or access and are
not supported are refused. Other unsupported keys have no effect; the warning names those that are not set to their
defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.broker.config.keys.metrics import METRIC_KEYS
from odradek.broker.config.keys.not_served.kraft import KRAFT_KEYS
from odradek.broker.config.keys.not_served.share_groups import SHARE_GROUP_KEYS
from odradek.broker.config.keys.not_served.tiered_storage import TIERED_STORAGE_KEYS
from odradek.storage.config.config_def import ConfigKey, ConfigType

NO_CLASS: Final = "there is no JVM that could load a class"

REFUSED: Final[Mapping[str, str]] = {
    "process.roles": "there is no KRaft mode",
    "controller.listener.names": "there is no KRaft mode",
    "zookeeper.metadata.migration.enable": "there is no KRaft mode to migrate to",
    "remote.log.storage.system.enable": "there is no tiered storage",
    "security.providers": NO_CLASS,
    "ssl.engine.factory.class": NO_CLASS,
    "sasl.client.callback.handler.class": NO_CLASS,
    "sasl.login.class": NO_CLASS,
}
"""Keys of which only the default is accepted, with the reason."""

REFUSED_VALUES: Final[Mapping[str, str]] = {
    "zookeeper.ssl.ocsp.enable": "true with zookeeper.ssl.client.enable=true: there is no OCSP client",
}
"""Keys that act, except for a value that the code that reads them refuses: the value and the reason."""

_THREADS: Final = "one event loop does the work, whatever the number"
_KRAFT: Final = "only KRaft uses it"
_TICKETS: Final = "MIT Kerberos gets new tickets by a keytab when half of the life of the old ones is over"
_TOKENS: Final = "a client of OAUTHBEARER gets a token for each connection"
_TOKEN_SERVER: Final = "a request to the token server has 20 s and is not repeated"
_NO_PROVIDER: Final = "OpenSSL does it; there is no JVM whose implementations could be chosen"
_MEMORY: Final = "a waiting request is removed as soon as it is answered"
_NO_METRICS: Final = "there are no metrics of a JVM"
_GROUPS: Final = "only KRaft has groups of the new protocol"

_OTHERS: Final[Mapping[str, str]] = {
    "sasl.kerberos.kinit.cmd": "nothing renews the tickets of a ticket cache",
    "sasl.kerberos.ticket.renew.window.factor": _TICKETS,
    "sasl.kerberos.ticket.renew.jitter": _TICKETS,
    "sasl.kerberos.min.time.before.relogin": _TICKETS,
    "sasl.login.refresh.window.factor": _TOKENS,
    "sasl.login.refresh.window.jitter": _TOKENS,
    "sasl.login.refresh.min.period.seconds": _TOKENS,
    "sasl.login.refresh.buffer.seconds": _TOKENS,
    "sasl.login.connect.timeout.ms": _TOKEN_SERVER,
    "sasl.login.read.timeout.ms": _TOKEN_SERVER,
    "sasl.login.retry.backoff.max.ms": _TOKEN_SERVER,
    "sasl.login.retry.backoff.ms": _TOKEN_SERVER,
    "zookeeper.clientCnxnSocket": "the ZooKeeper client has its own sockets, also for TLS",
    "zookeeper.ssl.truststore.password": "trust stores are PEM, which has no password",
    "ssl.provider": _NO_PROVIDER,
    "ssl.keymanager.algorithm": _NO_PROVIDER,
    "ssl.trustmanager.algorithm": _NO_PROVIDER,
    "ssl.secure.random.implementation": _NO_PROVIDER,
    "num.io.threads": _THREADS,
    "background.threads": _THREADS,
    "num.network.threads": _THREADS,
    "group.coordinator.threads": _THREADS,
    "early.start.listeners": "the authorizer is ready before any listener accepts connections",
    "max.request.partition.size.limit": _KRAFT,
    "unstable.api.versions.enable": "all served versions are final",
    "unstable.feature.versions.enable": "all served versions are final",
    "log.dir.failure.timeout.ms": _KRAFT,
    "unclean.leader.election.interval.ms": _KRAFT,
    "fetch.purgatory.purge.interval.requests": _MEMORY,
    "producer.purgatory.purge.interval.requests": _MEMORY,
    "delete.records.purgatory.purge.interval.requests": _MEMORY,
    "group.coordinator.append.linger.ms": _GROUPS,
    "group.coordinator.new.enable": _GROUPS,
    "group.consumer.session.timeout.ms": _GROUPS,
    "group.consumer.min.session.timeout.ms": _GROUPS,
    "group.consumer.max.session.timeout.ms": _GROUPS,
    "group.consumer.heartbeat.interval.ms": _GROUPS,
    "group.consumer.min.heartbeat.interval.ms": _GROUPS,
    "group.consumer.max.heartbeat.interval.ms": _GROUPS,
    "group.consumer.max.size": _GROUPS,
    "group.consumer.assignors": _GROUPS,
    "group.consumer.migration.policy": _GROUPS,
}


def acts_on_a_listener(name: str) -> bool:
    """Whether the key acts with the prefix `listener.name.<listener>.`. `name`: without the prefix."""
    return name in _ACTING_ON_A_LISTENER or (
        name.startswith(("sasl.", "ssl.")) and name not in _OF_ALL_LISTENERS and why_unused(name) is None
    )


def acts_on_a_mechanism(name: str) -> bool:
    """Whether the key acts with the prefix `listener.name.<listener>.<mechanism>.`. `name`: without the prefix."""
    return name in _ACTING_ON_A_MECHANISM or name.startswith("sasl.oauthbearer.")


def why_unused(name: str) -> str | None:
    """Why the key is refused or has no effect, with a prefix of a listener or without; None: it acts."""
    return WITHOUT_EFFECT.get(name) or REFUSED.get(name)


_ACTING_ON_A_LISTENER: Final = (
    "principal.builder.class",
    "max.connections",
    "max.connection.creation.rate",
    "connections.max.reauth.ms",
)
"""Beside those of TLS and SASL."""

_OF_ALL_LISTENERS: Final = ("sasl.mechanism.inter.broker.protocol",)

_ACTING_ON_A_MECHANISM: Final = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.login.callback.handler.class",
    "sasl.server.callback.handler.class",
)


_ACTING: Final = ("node.id",)
"""Of the groups below."""


def _of_group(keys: Iterable[ConfigKey], reason: str) -> dict[str, str]:
    return {key.name: reason for key in keys if key.name not in (*REFUSED, *_ACTING)}


WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    **_of_group(METRIC_KEYS, _NO_METRICS),
    **_of_group(TIERED_STORAGE_KEYS, "there is no tiered storage"),
    **_of_group(SHARE_GROUP_KEYS, _GROUPS),
    **_of_group(KRAFT_KEYS, _KRAFT),
    **_OTHERS,
}
"""Keys that are read and have no effect, with the reason."""


def refusal(key: ConfigKey, is_default: bool) -> str | None:
    """Why the start refuses the key, or None. Classes are refused where they are parsed."""
    if is_default or key.name not in REFUSED or key.type is ConfigType.CLASS:
        return None
    return f"{key.name} is set, but {REFUSED[key.name]}."


def effect(name: str) -> str:
    """The effect of the key, for the reference."""
    if name in REFUSED:
        return f"refused: {REFUSED[name]}"
    if name in REFUSED_VALUES:
        return f"refused if {REFUSED_VALUES[name]}"
    return f"none: {WITHOUT_EFFECT[name]}" if name in WITHOUT_EFFECT else "acts"
