"""The SASL client of a command. Imported when it is needed.

Kafka: SaslChannelBuilder (in client mode).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.broker.security.sasl.client_authenticator import ClientExchange, authenticate
from odradek.broker.security.sasl.mechanisms import client_context, mechanism_module
from odradek.broker.tools.command.failures import CommandFailed
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.security.sasl.client_authenticator import ClientSession
    from odradek.broker.tools.command.client_config import ClientSasl
    from odradek.timer.clock import Clock


async def authenticate_client(
    sasl: ClientSasl,
    host: str,
    client_id: str,
    send: Callable[[bytes], Awaitable[memoryview | bytes]],
    clock: Clock,
) -> ClientSession:
    """Authenticate on a new connection to `host`: `send` sends a frame and returns its answer.

    Raises: OSError; CommandFailed if the configuration is not valid.
    """
    try:
        context = client_context(sasl.mechanism, sasl.jaas_config, sasl.settings, clock, os.urandom)
        client = mechanism_module(sasl.mechanism).make_client(context._replace(server_host=host))
    except ConfigError as error:
        raise CommandFailed(str(error)) from error

    async def evaluate(challenge: bytes) -> bytes | None:
        return client.evaluate_challenge(challenge)  # a command has nothing else to do

    exchange = ClientExchange(sasl.mechanism, client_id, send, evaluate, os.urandom(1)[0])
    return await authenticate(exchange)
