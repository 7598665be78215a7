"""The TLS contexts of all listeners of a broker: for accepting, and for connecting to other brokers.

Contexts are made when they are first asked for: at the start those of the bound listeners, later those of listeners
that are added. `replacements` reads changed stores outside the event loop, `replace` puts their contexts in place.

Kafka: ChannelBuilders, SslChannelBuilder.
"""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.security.principal_builder import PrincipalRefused
from odradek.broker.security.tls.der import DerError, certificate_names
from odradek.broker.security.tls.distinguished_name import rfc2253
from odradek.broker.security.tls.principal_mapper import NoMatchingRule, SslPrincipalMapper
from odradek.broker.security.tls.settings import TlsSettings, listener_value
from odradek.broker.security.tls.ssl_factory import SslFactory
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.broker_config import BrokerConfig

log = logging.getLogger(__name__)


class Replacements(NamedTuple):
    """Contexts with other stores, and why others could not be made, by name of the listener."""

    factories: Mapping[str, SslFactory]
    refused: Mapping[str, ConfigError]


class TlsContexts:
    """The contexts by name of the listener."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._factories: dict[str, SslFactory] = {}
        self._mappers: dict[str, SslPrincipalMapper] = {}

    def server_context(self, listener_name: str) -> ssl.SSLContext:
        """The present context for accepting. Raises: ConfigError when it is made."""
        return self._factory(listener_name).server_context

    def client_context(self, listener_name: str) -> ssl.SSLContext:
        """The present context for connecting to a listener of this name. Raises: ConfigError when it is made."""
        return self._factory(listener_name).client_context

    def load(self, listener_name: str) -> SslFactory:
        """Read the stores of a listener. Blocks for the files, changes nothing. Raises: ConfigError."""
        config = self._config
        protocol = _protocol(config, listener_name)
        try:
            SslPrincipalMapper(self._rules(listener_name))
            return SslFactory(
                TlsSettings.of_listener(config, listener_name, has_sasl=protocol is SecurityProtocol.SASL_SSL),
                is_server=any(point.listener_name == listener_name for point in config.listeners.bound),
                keystore_verifiable_using_truststore=listener_name == config.listeners.inter_broker.name,
            )
        except ConfigError as error:
            raise ConfigError(f"TLS of listener {listener_name}: {error}") from None

    def add(self, listener_name: str, factory: SslFactory) -> None:
        """Use the contexts for a listener that is opened."""
        self._factories[listener_name] = factory
        self._mappers[listener_name] = SslPrincipalMapper(self._rules(listener_name))

    def principal(self, listener_name: str, certificate: bytes) -> str:
        """`User:name` of a client by its certificate (DER). Raises: PrincipalRefused.

        Kafka: DefaultKafkaPrincipalBuilder.
        """
        try:
            return f"User:{self._mappers[listener_name].name_of(self.peer_name(certificate))}"
        except NoMatchingRule as error:
            raise PrincipalRefused(f"Failed to map the name of a certificate: {error}") from None

    def peer_name(self, certificate: bytes) -> str:
        """The distinguished name of a certificate (DER) in the form of RFC 2253. Raises: PrincipalRefused."""
        try:
            return rfc2253(certificate_names(certificate).subject)
        except DerError as error:
            raise PrincipalRefused(f"Failed to map the name of a certificate: {error}") from None

    def replacements(self, config: BrokerConfig, *, only_files: bool = False) -> Replacements:
        """The contexts of listeners that have other stores with `config`. Reads files.

        `only_files`: of the other listeners instead, those whose files have changed.
        Kafka: DynamicBrokerConfig.processListenerReconfigurable.
        """
        factories: dict[str, SslFactory] = {}
        refused: dict[str, ConfigError] = {}
        for name, factory in list(self._factories.items()):
            protocol = _protocol(config, name)
            if protocol is None or not protocol.has_tls:
                continue
            settings = TlsSettings.of_listener(config, name, has_sasl=protocol is SecurityProtocol.SASL_SSL)
            if only_files != (factory.settings == factory.settings.with_stores_of(settings)):
                continue
            try:
                new = factory.reconfigured(settings)
            except ConfigError as error:
                refused[name] = error
            else:
                if new is not factory:
                    factories[name] = new
        return Replacements(factories, refused)

    def replace(self, factories: Mapping[str, SslFactory]) -> None:
        """Use these contexts for new connections."""
        for name, factory in factories.items():
            self._factories[name] = factory
            log.info(
                "Created new SSL engine builder for listener %s with keystore %s truststore %s",
                name,
                factory.key_store,
                factory.trust_store,
            )

    def forget(self, listener_name: str) -> None:
        """The listener is closed: a later one of its name reads its settings anew."""
        self._factories.pop(listener_name, None)
        self._mappers.pop(listener_name, None)

    def _factory(self, listener_name: str) -> SslFactory:
        factory = self._factories.get(listener_name)
        if factory is None:
            factory = self.load(listener_name)
            self.add(listener_name, factory)
        return factory

    def _rules(self, listener_name: str) -> str:
        return str(listener_value(self._config, listener_name, "ssl.principal.mapping.rules"))


def _protocol(config: BrokerConfig, listener_name: str) -> SecurityProtocol | None:
    listeners = config.listeners
    for security in (listeners.inter_broker, listeners.control):
        if security.name == listener_name:
            return security.security_protocol
    return next((point.security_protocol for point in listeners.bound if point.listener_name == listener_name), None)
