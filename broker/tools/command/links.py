"""The links of a command to its brokers, and the timer that they need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.broker.inter_broker.broker_connection import BrokerConnection, LinkSettings
from odradek.broker.inter_broker.socket_links import connect
from odradek.broker.machine.ticker import Ticker
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.broker.tools.command.addresses import parse_addresses
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.framing import MAX_FRAME_BYTES
from odradek.timer.clock import Clock, SystemClock
from odradek.timer.system_timer import SystemTimer

if TYPE_CHECKING:
    from odradek.broker.network.frames.answer_receiver import AnswerReceiver
    from odradek.broker.tools.command.client_config import ClientConfig, ClientSasl


@dataclass(frozen=True, slots=True)
class Links:
    """What a client is made of."""

    settings: LinkSettings
    clock: Clock
    timer: SystemTimer

    def make_link(self, end_point: EndPoint, /, *, client_id: str) -> BrokerConnection:
        """Implements `MakeLink`."""
        return BrokerConnection(end_point, client_id=client_id, settings=self.settings)


def parse_bootstrap(text: str) -> list[EndPoint]:
    """`host:port,host:port`; an IPv6 address in brackets. Raises: CommandFailed."""
    return [EndPoint(host, port, "", SecurityProtocol.PLAINTEXT) for host, port in parse_addresses(text)]


@contextmanager
def links_of(config: ClientConfig) -> Iterator[Links]:
    """Links for as long as the block runs, on the running event loop."""
    clock = SystemClock()
    timer = SystemTimer(clock)
    ticker = Ticker(asyncio.get_running_loop(), clock, timer)
    ticker.start()

    async def connect_and_authenticate(
        end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver]
    ) -> AnswerReceiver:
        receiver = await connect(end_point, make_receiver, config.tls_context)
        await authenticate(end_point, receiver)
        return receiver

    async def authenticate(end_point: EndPoint, receiver: AnswerReceiver) -> None:
        if config.sasl is not None:
            await _authenticate(config, config.sasl, receiver, clock)

    settings = LinkSettings(
        connect=connect_and_authenticate,
        reauthenticate=authenticate,
        timer=timer,
        max_frame_bytes=MAX_FRAME_BYTES,
        connection_setup_timeout_ms=config.connection_setup_timeout_ms,
        connection_setup_timeout_max_ms=config.connection_setup_timeout_max_ms,
        buffers=FrameBuffers(),
    )
    try:
        yield Links(settings, clock, timer)
    finally:
        ticker.stop()


async def _authenticate(config: ClientConfig, sasl: ClientSasl, receiver: AnswerReceiver, clock: Clock) -> None:
    from odradek.broker.tools.command.sasl_client import authenticate_client

    try:
        session = await authenticate_client(
            sasl, config.client_id, receiver.exchange, clock, receiver.authenticate_version
        )
    except BaseException:
        receiver.abort(ConnectionAbortedError("the authentication failed"))
        raise
    receiver.authenticate_version = session.authenticate_version
    receiver.usable_until_ms = clock.monotonic_ms() + session.usable_ms if session.usable_ms else None
