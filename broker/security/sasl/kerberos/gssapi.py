"""The mechanism GSSAPI: who a client is says its Kerberos ticket.

A listener takes tickets for the principal of its JAAS entry, whose key is in the keytab. The broker itself does not ask
the KDC, except for tickets to other brokers. The package `gssapi` is imported when a listener, a connection to another
broker or a command uses the mechanism.

A step of an exchange decrypts, and reads the keytab and the replay cache: it runs in a thread of the io pool.

A session ends by `connections.max.reauth.ms` only: as in Apache Kafka, the end of the ticket does not end it.

Kafka: SaslServerAuthenticator.createSaslKerberosServer, SaslServerCallbackHandler, KerberosLogin.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.io_pool import run_in_pool
from odradek.broker.security.sasl.kerberos.exchanges import AcceptorExchange, InitiatorExchange
from odradek.broker.security.sasl.kerberos.krb5_login import client_login, server_login
from odradek.broker.security.sasl.ports import SaslError
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from types import ModuleType

    from odradek.broker.security.sasl.kerberos.krb5_login import Krb5Login
    from odradek.broker.security.sasl.ports import MakeSaslServer, SaslClient, SaslContext
    from odradek.storage.disk.ports import IoPool

logger = logging.getLogger(__name__)

LIBRARY_MISSING: Final = (
    "GSSAPI needs the package gssapi: pip install 'odradek[gssapi]', which needs a C compiler and the headers of MIT "
    "Kerberos (libkrb5-dev on Debian)"
)
_LOGGED_CHARACTERS: Final = 300
"""A client chooses its authorization id."""


def load_server(context: SaslContext) -> MakeSaslServer:
    """Raises: ConfigError."""
    if context.handler_class is not None:
        raise ConfigError("GSSAPI has no credentials that sasl.server.callback.handler.class could check")
    login = server_login(context)
    make_context = _library().load_acceptor(login)
    return lambda: GssapiSaslServer(AcceptorExchange(make_context), context.io_pool, context.handler_slots)


def make_client(context: SaslContext) -> SaslClient:
    """Raises: ConfigError."""
    return exchange_maker(client_login(context))(context.server_host)


def exchange_maker(login: Krb5Login) -> Callable[[str], SaslClient]:
    """Makes the client's side of an exchange with a server by the host of its principal. Raises: ConfigError."""
    make_initiator = _library().make_initiator
    return lambda host: InitiatorExchange(partial(make_initiator, login, host))


def _library() -> ModuleType:
    """The module that imports the package. Raises: ConfigError."""
    try:
        return import_module("odradek.broker.security.sasl.kerberos.security_contexts")
    except ImportError as error:
        raise ConfigError(LIBRARY_MISSING) from error


class GssapiSaslServer:
    """Implements `ports.SaslServer`. `slots` limits the steps in threads."""

    def __init__(self, exchange: AcceptorExchange, io_pool: IoPool, slots: asyncio.Semaphore | None) -> None:
        self._exchange = exchange
        self._io_pool = io_pool
        self._slots = slots
        self.is_complete = False
        self.authorization_id = ""
        self.session_expiry_ms: int | None = None
        self.is_token_authenticated = False

    def evaluate_response(self, response: bytes, /) -> Awaitable[bytes | None]:
        return self._evaluate(response)

    async def _evaluate(self, response: bytes) -> bytes | None:
        challenge = await self._in_thread(response)
        exchange = self._exchange
        if exchange.is_complete:
            logger.info(
                "Successfully authenticated client: authenticationID=%s; authorizationID=%r.",
                exchange.client_principal,
                exchange.requested_id[:_LOGGED_CHARACTERS],
            )
            self.authorization_id = exchange.client_principal
            self.is_complete = True
        return challenge

    async def _in_thread(self, response: bytes) -> bytes | None:
        """Raises: SaslError."""
        try:
            return await run_in_pool(self._io_pool, lambda: self._exchange.evaluate(response), self._slots)
        except OSError as error:
            raise SaslError(str(error)) from error
