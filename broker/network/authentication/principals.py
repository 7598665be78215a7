"""The principals of accepted connections: by a class of the operator, else as Apache Kafka names clients by default.

The default is `User:` with the name of the SASL user, or with the mapped name of the TLS certificate, or ANONYMOUS. The
name of a user of GSSAPI is the short one of the Kerberos principal.

Kafka: ChannelBuilders.createPrincipalBuilder, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.controller.model.broker_info import SASL_PROTOCOLS, SecurityProtocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.network.connection.connection import Connection
    from odradek.broker.security.principal_builder import KafkaPrincipalBuilder
    from odradek.broker.security.tls.tls_contexts import TlsContexts


logger = logging.getLogger(__name__)

_GSSAPI: Final = "GSSAPI"
_MECHANISMS: Final = "sasl.enabled.mechanisms"


class Principals:
    """Of all listeners of a broker."""

    def __init__(self, config: BrokerConfig, tls: Callable[[], TlsContexts]) -> None:
        self._config = config
        self._tls = tls
        self._builders: dict[str, KafkaPrincipalBuilder] = {}
        """By the name of the listener; only those with a class of the operator."""
        self._short_names: dict[str, Callable[[str], str]] = {}
        """By the name of the listener; only those with GSSAPI."""

    def load_listeners(self) -> None:
        """Load the classes of new listeners, and close those of listeners that are gone. Raises: StartupError."""
        names = {end_point.listener_name for end_point in self._config.listeners.bound}
        for gone in self._builders.keys() - names:
            _close(self._builders.pop(gone))
        self._load_short_names(names)
        if not any(key.endswith("principal.builder.class") for key in self._config.settings):
            return
        from odradek.broker.security.principal_builder import load_principal_builder

        for name in names - self._builders.keys():
            builder = load_principal_builder(self._config, name)
            if builder is not None:
                self._builders[name] = builder

    def _load_short_names(self, names: set[str]) -> None:
        """A listener keeps its rules, as its mechanisms, until it is closed. Raises: StartupError."""
        with_gssapi = {
            end_point.listener_name
            for end_point in self._config.listeners.bound
            if end_point.security_protocol in SASL_PROTOCOLS
            and _GSSAPI in cast("list[str]", self._config.listener_value(end_point.listener_name, _MECHANISMS, ""))
        }
        for gone in self._short_names.keys() - names:
            del self._short_names[gone]
        for name in with_gssapi - self._short_names.keys():
            from odradek.broker.security.sasl.kerberos.short_names import load_short_names

            self._short_names[name] = load_short_names(self._config, name)

    def close(self) -> None:
        while self._builders:
            _close(self._builders.popitem()[1])

    def identify(self, connection: Connection) -> None:
        """Set the principal of a connected client that does not use SASL, or abort the connection."""
        if connection.security_protocol in SASL_PROTOCOLS:
            return
        builder = self._builders.get(connection.listener_name)
        if builder is None and connection.security_protocol is not SecurityProtocol.SSL:
            return
        from odradek.broker.security.principal_builder import PrincipalRefused

        try:
            if builder is not None:
                connection.principal = self._built(builder, connection, None, None)
                return
            certificate = _peer_certificate(connection)
            if certificate is not None:
                connection.principal = self._tls().principal(connection.listener_name, certificate)
        except PrincipalRefused as refusal:
            connection.abort(CloseReason.NOT_AUTHENTICATED, str(refusal))

    def principal_of_user(self, connection: Connection, mechanism: str, authorization_id: str) -> str:
        """The principal of a client that has authenticated with SASL. Raises: PrincipalRefused."""
        builder = self._builders.get(connection.listener_name)
        if builder is None:
            if mechanism == _GSSAPI:
                return f"User:{self._short_names[connection.listener_name](authorization_id)}"
            return f"User:{authorization_id}"
        return self._built(builder, connection, mechanism, authorization_id)

    def _built(
        self, builder: KafkaPrincipalBuilder, connection: Connection, mechanism: str | None, user: str | None
    ) -> str:
        """Raises: PrincipalRefused."""
        from odradek.broker.security.principal_builder import AuthenticationContext, PrincipalRefused, build_principal

        certificate, name = _peer_certificate(connection), None
        if certificate is not None:
            name = self._tls().peer_name(certificate)
        context = AuthenticationContext(
            connection.listener_name,
            connection.security_protocol,
            connection.client_host,
            certificate,
            name,
            mechanism,
            user,
        )
        try:
            return build_principal(builder, context)
        except PrincipalRefused as refusal:
            if mechanism is not None:  # the client gets a general message
                logger.warning("Failed authentication with /%s (%s)", connection.client_host, refusal)
            raise


def _close(builder: KafkaPrincipalBuilder) -> None:
    try:
        builder.close()
    except Exception:
        logger.exception("Cannot close the principal builder %s", type(builder).__qualname__)


def _peer_certificate(connection: Connection) -> bytes | None:
    """The certificate of a TLS client (DER), if it has shown one."""
    tls = cast("ssl.SSLObject | None", connection.transport_info("ssl_object"))
    return None if tls is None else tls.getpeercert(binary_form=True)
