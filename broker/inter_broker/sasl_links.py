"""SASL on connections to other brokers: this broker authenticates with the JAAS entry of the listener.

Before a session ends, the next request authenticates again on the same connection (KIP-368).

Kafka: SaslChannelBuilder (in client mode), ChannelBuilders.clientChannelBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.broker.machine.io_pool import run_in_pool
from odradek.broker.security.sasl.client_authenticator import ClientExchange, authenticate
from odradek.broker.security.sasl.mechanisms import mechanism_module, sasl_context
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    import asyncio

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.network.frames.answer_receiver import AnswerReceiver
    from odradek.broker.security.sasl.mechanisms import SaslParts
    from odradek.broker.security.sasl.ports import SaslClient
    from odradek.controller.model.broker_info import EndPoint
    from odradek.storage.disk.ports import IoPool


async def authenticate_link(
    config: BrokerConfig, parts: SaslParts, end_point: EndPoint, receiver: AnswerReceiver
) -> None:
    """Authenticate on a connection to a listener of another broker, for the first time or again. Raises: OSError."""
    mechanism = cast("str", config.value("sasl.mechanism.inter.broker.protocol"))
    try:
        context = sasl_context(config, end_point.listener_name, mechanism, parts)
        client = mechanism_module(mechanism).make_client(context._replace(server_host=end_point.host))
    except ConfigError as error:
        raise ConnectionError(str(error)) from error

    async def evaluate(challenge: bytes) -> bytes | None:
        return await evaluate_in_pool(parts.io_pool, client, challenge, parts.handler_slots)

    byte = parts.random_bytes(1)[0]
    exchange = ClientExchange(mechanism, str(config.broker_id), receiver.exchange, evaluate, byte)
    session = await authenticate(exchange, receiver.authenticate_version)
    receiver.authenticate_version = session.authenticate_version
    receiver.usable_until_ms = parts.clock.monotonic_ms() + session.usable_ms if session.usable_ms else None


async def evaluate_in_pool(
    io_pool: IoPool, client: SaslClient, challenge: bytes, slots: asyncio.Semaphore | None
) -> bytes | None:
    """`evaluate_challenge` in a thread: it may hash, or ask a server for a token. Raises: SaslError."""
    return await run_in_pool(io_pool, lambda: client.evaluate_challenge(challenge), slots)
