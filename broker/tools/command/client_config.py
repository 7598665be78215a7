"""The configuration of a command's client: `--command-config FILE`, a properties file as Apache's tools read it.

Kafka: AdminClientConfig.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.java_split import java_trim

if TYPE_CHECKING:
    import ssl

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
CLIENT_ID: Final = "odradek-admin"
REQUEST_TIMEOUT_MS: Final = 30_000
API_TIMEOUT_MS: Final = 60_000
RETRY_BACKOFF_MS: Final = 100
CONNECTION_SETUP_TIMEOUT_MS: Final = 10_000
CONNECTION_SETUP_TIMEOUT_MAX_MS: Final = 30_000
PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
SASL_SSL: Final = "SASL_SSL"
TLS_PREFIX: Final = "ssl."
CONFIG_PROVIDERS: Final = "config.providers"
SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"


class ClientSasl(NamedTuple):
    """How a client authenticates. Its repr has no password."""

    mechanism: str
    jaas_config: str
    settings: Mapping[str, str] = {}
    """What GSSAPI and OAUTHBEARER need besides: those of `SASL_KEYS` that are set."""

    def __repr__(self) -> str:
        return f"ClientSasl({self.mechanism})"


class ClientConfig(NamedTuple):
    """Settings of a client: servers, its name, its time limits, and how it authenticates."""

    bootstrap: str
    """`host:port,host:port`."""
    client_id: str
    request_timeout_ms: int
    api_timeout_ms: int
    """For one call with all its retries, such as finding the controller and getting its response."""
    retry_backoff_ms: int
    connection_setup_timeout_ms: int
    connection_setup_timeout_max_ms: int
    sasl: ClientSasl | None = None
    tls_context: ssl.SSLContext | None = None
    """None without TLS."""


SASL_KEYS: Final = (
    "org.apache.kafka.sasl.oauthbearer.allowed.urls",
    "sasl.kerberos.service.name",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.token.endpoint.url",
)

KEYS: Final = (
    *SASL_KEYS,
    "bootstrap.servers",
    "client.id",
    "default.api.timeout.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "sasl.jaas.config",
    "sasl.mechanism",
    "security.protocol",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)
"""The keys that every client reads."""

LONG_KEYS: Final = frozenset(
    {
        "buffer.memory",
        "linger.ms",
        "max.block.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
"""The numbers of 64 bits among the keys of all clients. Kafka: ProducerConfig, ConsumerConfig, AdminClientConfig."""


def read_properties(path: str) -> dict[str, str]:
    """The settings in a properties file. Raises: CommandFailed if it cannot be read."""
    from odradek.storage.disk import properties_file

    try:
        return properties_file.read_properties(path)
    except (OSError, ValueError) as error:
        raise CommandFailed(f"cannot read the client configuration {path}: {error}") from error


def resolved(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with the variables of their config providers replaced, without the keys of the providers.

    Kafka: AbstractConfig.resolveConfigVariables. Raises: CommandFailed.
    """
    if CONFIG_PROVIDERS not in settings:
        return dict(settings)
    from odradek.broker.config.config_providers import resolve_variables
    from odradek.broker.machine.startup_error import StartupError
    from odradek.storage.config.config_def import ConfigError

    try:
        texts, _ = resolve_variables(settings)
    except (ConfigError, StartupError) as error:
        raise CommandFailed(str(error)) from error
    return {name: text for name, text in texts.items() if not name.startswith(CONFIG_PROVIDERS)}


def client_config(
    bootstrap: str | None, settings: Mapping[str, str], *, client_id: str = CLIENT_ID, also: Collection[str] = ()
) -> ClientConfig:
    """The configuration from `--bootstrap-server` and a properties file.

    Keys that are neither in `KEYS` nor in `also` (those that the command reads itself) get a warning on stderr.
    Raises: CommandFailed for a value that is not valid.
    """
    protocol = java_trim(settings.get("security.protocol", PLAINTEXT))
    if protocol.upper() not in (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL):
        raise CommandFailed(f"Invalid value {protocol} for configuration security.protocol")
    for name in sorted(settings.keys() - {*KEYS, *also}):
        if name.startswith(TLS_PREFIX):
            continue
        sys.stderr.write(f"odradek: warning: the configuration '{name}' is not used by this command\n")
    return ClientConfig(
        bootstrap=settings.get("bootstrap.servers", DEFAULT_BOOTSTRAP) if bootstrap is None else bootstrap,
        client_id=settings.get("client.id", client_id),
        request_timeout_ms=integer(settings, "request.timeout.ms", REQUEST_TIMEOUT_MS),
        api_timeout_ms=integer(settings, "default.api.timeout.ms", API_TIMEOUT_MS),
        retry_backoff_ms=integer(settings, "retry.backoff.ms", RETRY_BACKOFF_MS),
        connection_setup_timeout_ms=integer(
            settings, "socket.connection.setup.timeout.ms", CONNECTION_SETUP_TIMEOUT_MS
        ),
        connection_setup_timeout_max_ms=integer(
            settings, "socket.connection.setup.timeout.max.ms", CONNECTION_SETUP_TIMEOUT_MAX_MS
        ),
        sasl=_sasl(settings) if protocol.upper() in (SASL_PLAINTEXT, SASL_SSL) else None,
        tls_context=tls_context(settings),
    )


def _sasl(settings: Mapping[str, str]) -> ClientSasl:
    """Raises: CommandFailed."""
    jaas_config = settings.get("sasl.jaas.config")
    if jaas_config is None:
        raise CommandFailed("sasl.jaas.config is not set: there is no JVM that reads a JAAS file")
    mechanism = java_trim(settings.get("sasl.mechanism", "GSSAPI"))
    return ClientSasl(mechanism, jaas_config, {key: settings[key] for key in SASL_KEYS if key in settings})


def tls_context(settings: Mapping[str, str]) -> ssl.SSLContext | None:
    """The TLS context of a client by its `ssl.*` keys; None if it connects without TLS. Raises: CommandFailed."""
    if java_trim(settings.get("security.protocol", PLAINTEXT)).upper() not in (SSL, SASL_SSL):
        return None
    from odradek.broker.security.tls.settings import TlsSettings
    from odradek.broker.security.tls.ssl_factory import SslFactory
    from odradek.storage.config.config_def import ConfigError

    try:
        return SslFactory(TlsSettings.of_client(settings), is_server=False).client_context
    except ConfigError as error:
        raise CommandFailed(str(error)) from error


def integer(settings: Mapping[str, str], name: str, default: int, *, least: int = 0) -> int:
    """The value of a key: a LONG for `LONG_KEYS`, else an INT, of at least `least`. Raises: CommandFailed.

    Kafka: ConfigDef.parseType, ConfigDef.Range.
    """
    text = settings.get(name)
    if text is None:
        return default
    kind, limit = ("LONG", 1 << 63) if name in LONG_KEYS else ("INT", 1 << 31)
    try:
        value = int(text)
    except ValueError:
        value = limit
    if not -limit <= value < limit or "_" in text:
        raise CommandFailed(f"Invalid value {text} for configuration {name}: Not a number of type {kind}")
    if value < least:
        raise CommandFailed(f"Invalid value {text} for configuration {name}: Value must be at least {least}")
    return value
