"""A class of yours that names clients: `principal.builder.class`, also with the prefix of a listener.

The principal is what ACLs, quotas and the logs call a client. The class is asked once for each connection when it is
authenticated, and again for each re-authentication; Apache Kafka asks its class for each request.

Kafka: KafkaPrincipalBuilder, AuthenticationContext, SslAuthenticationContext, SaslAuthenticationContext,
ChannelBuilders.createPrincipalBuilder.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from odradek.broker.config.keys.sasl import DEFAULT_PRINCIPAL_BUILDER
from odradek.broker.config.python_class import new_instance, place_of
from odradek.broker.machine.startup_error import StartupError
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.controller.model.broker_info import SecurityProtocol

KEY: Final = "principal.builder.class"


class AuthenticationContext(NamedTuple):
    """What is known of a client that is authenticated."""

    listener_name: str
    security_protocol: SecurityProtocol
    client_address: str
    """The IP address, as text."""
    peer_certificate: bytes | None
    """The client's certificate (DER); None without TLS, and if the client has shown none."""
    peer_name: str | None
    """The distinguished name of that certificate, in the form of RFC 2253."""
    sasl_mechanism: str | None
    """None without SASL, as the next."""
    authorization_id: str | None
    """The name of the user who is authenticated with SASL; the owner, if it was with a delegation token."""


class KafkaPrincipalBuilder(Protocol):
    """Decides from memory, at once: `build` runs on the event loop."""

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Called once, before the listener accepts clients. `configs` are the broker's settings as texts; those with
        the prefix of the listener are there without it, too.
        """

    @abstractmethod
    def build(self, context: AuthenticationContext, /) -> str:
        """The principal, such as `User:alice`. If it raises, the client is refused."""

    def close(self) -> None:
        """Called once, when the listener is closed."""


class PrincipalRefused(Exception):
    """A client has no principal; the message says why."""


def load_principal_builder(config: BrokerConfig, listener_name: str) -> KafkaPrincipalBuilder | None:
    """The configured object of a listener; None: Apache Kafka's default. Raises: StartupError."""
    try:
        path = config.listener_class(listener_name, KEY)
    except ConfigError as error:
        raise StartupError(str(error)) from error
    if path in (None, DEFAULT_PRINCIPAL_BUILDER):
        return None
    return new_instance(KEY, path, KafkaPrincipalBuilder, config.configs_of_listener(listener_name))


def build_principal(builder: KafkaPrincipalBuilder, context: AuthenticationContext) -> str:
    """Raises: PrincipalRefused, if the object raises or returns something that is no principal."""
    try:
        principal: object = builder.build(context)
    except Exception as error:
        raise PrincipalRefused(f"{KEY} raised {place_of(error)}") from error
    if not isinstance(principal, str) or "" in principal.partition(":")[::2]:
        raise PrincipalRefused(f"{KEY} returned {principal!r}, which is not like User:name")
    return principal
