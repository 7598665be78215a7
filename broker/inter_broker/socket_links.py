"""Links over sockets, and the table of security protocols that can connect.

Apache Kafka accepts an answer of any size from another broker. Here it is limited to the bytes that a follower requests
plus `socket.request.max.bytes`: the first batch of an answer comes even if it is larger than requested, and no producer
can have sent a larger one.

Kafka: ChannelBuilders.clientChannelBuilder, NetworkUtils.buildNetworkClient.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from odradek.broker.network.frame_buffers import FrameBuffers
from odradek.controller.model.broker_info import SecurityProtocol

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.inter_broker.broker_connection import BrokerConnection, Connect, LinkSettings
    from odradek.broker.network.answer_receiver import AnswerReceiver
    from odradek.controller.model.broker_info import EndPoint
    from odradek.timer.system_timer import SystemTimer


async def connect_plaintext(end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver]) -> AnswerReceiver:
    """Connect over TCP. Small requests are not delayed: both event loops set TCP_NODELAY."""
    loop = asyncio.get_running_loop()
    _, receiver = await loop.create_connection(make_receiver, end_point.host, end_point.port)
    return receiver


CONNECT: Final[Mapping[SecurityProtocol, Connect]] = {SecurityProtocol.PLAINTEXT: connect_plaintext}
"""A start refuses the other protocols (`config_checks`)."""


class SocketLinks:
    """Implements `ports.MakeLink`."""

    def __init__(self, config: BrokerConfig, timer: SystemTimer) -> None:
        self._config = config
        self._timer = timer
        self._receive_buffer_bytes = config.replica_socket_receive_buffer_bytes
        self._settings: LinkSettings | None = None

    def __call__(self, end_point: EndPoint, /, *, client_id: str) -> BrokerConnection:
        # Imported here: a single broker never needs it.
        from odradek.broker.inter_broker.broker_connection import BrokerConnection

        if self._settings is None:
            self._settings = self._make_settings()
        return BrokerConnection(end_point, client_id=client_id, settings=self._settings)

    def _make_settings(self) -> LinkSettings:
        from odradek.broker.inter_broker.broker_connection import LinkSettings

        config = self._config
        return LinkSettings(
            connect=self._connect,
            timer=self._timer,
            max_frame_bytes=config.replica_fetch_response_max_bytes + config.socket_request_max_bytes,
            connection_setup_timeout_ms=config.socket_connection_setup_timeout_ms,
            connection_setup_timeout_max_ms=config.socket_connection_setup_timeout_max_ms,
            buffers=FrameBuffers(),
        )

    async def _connect(self, end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver]) -> AnswerReceiver:
        from odradek.broker.network.listening_socket import USE_OS_DEFAULT  # commands need no configuration of a broker

        receiver = await CONNECT[end_point.security_protocol](end_point, make_receiver)
        if self._receive_buffer_bytes != USE_OS_DEFAULT:
            receiver.set_socket_option(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        return receiver
