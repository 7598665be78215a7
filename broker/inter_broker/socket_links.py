"""Links over sockets, with or without TLS and SASL.

Apache Kafka accepts an answer of any size from another broker. Here it is limited to the bytes that a follower requests
plus `socket.request.max.bytes`: the first batch of an answer comes even if it is larger than requested, and no producer
can have sent a larger one.

Kafka: ChannelBuilders.clientChannelBuilder, NetworkUtils.buildNetworkClient.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.controller.model.broker_info import SASL_PROTOCOLS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.inter_broker.broker_connection import BrokerConnection, LinkSettings
    from odradek.broker.network.frames.answer_receiver import AnswerReceiver
    from odradek.broker.security.sasl.mechanisms import SaslParts
    from odradek.broker.security.tls.tls_contexts import TlsContexts
    from odradek.controller.model.broker_info import EndPoint
    from odradek.timer.system_timer import SystemTimer


async def connect(
    end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver], context: ssl.SSLContext | None
) -> AnswerReceiver:
    """Connect over TCP, with TLS if there is a context. Small requests are not delayed: both loops set TCP_NODELAY."""
    if context is not None:
        return await _connect_with_tls(end_point, make_receiver, context)
    loop = asyncio.get_running_loop()
    _, receiver = await loop.create_connection(make_receiver, end_point.host, end_point.port)
    return receiver


async def _connect_with_tls(
    end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver], context: ssl.SSLContext
) -> AnswerReceiver:
    """Send the alert of a handshake that fails: the event loops drop what OpenSSL has written for the other end."""
    import ssl

    from odradek.broker.security.tls.alerts import alert_of

    loop = asyncio.get_running_loop()
    connected = await _connected_socket(loop, end_point)
    with connected.dup() as same:  # the loop closes the other descriptor as soon as the handshake fails
        try:
            _, receiver = await loop.create_connection(
                make_receiver, sock=connected, ssl=context, server_hostname=end_point.host
            )
        except ssl.SSLError as error:
            with suppress(OSError):  # the other end is gone, or takes nothing
                same.send(alert_of(error))
            raise
    return receiver


async def _connected_socket(loop: asyncio.AbstractEventLoop, end_point: EndPoint) -> socket.socket:
    """A socket that is connected to the first address that accepts. Raises: OSError, of the last one."""
    failure: OSError = ConnectionError(f"{end_point.host} has no address")
    addresses = await loop.getaddrinfo(end_point.host, end_point.port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


class SocketLinks:
    """Implements `ports.MakeLink`."""

    def __init__(
        self,
        config: BrokerConfig,
        timer: SystemTimer,
        tls: Callable[[], TlsContexts] | None = None,
        sasl: Callable[[], SaslParts] | None = None,
    ) -> None:
        """`tls` gives the contexts of listeners with TLS, `sasl` what SASL mechanisms are made from; without them there
        is neither.
        """
        self._tls = tls
        self._config = config
        self._sasl = sasl
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
            reauthenticate=self._authenticate,
            timer=self._timer,
            max_frame_bytes=config.replica_fetch_response_max_bytes + config.socket_request_max_bytes,
            connection_setup_timeout_ms=config.socket_connection_setup_timeout_ms,
            connection_setup_timeout_max_ms=config.socket_connection_setup_timeout_max_ms,
            buffers=FrameBuffers(),
        )

    async def _connect(self, end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver]) -> AnswerReceiver:
        # Here, because commands need no configuration of a broker.
        from odradek.broker.network.sockets.listening_socket import USE_OS_DEFAULT

        context = self._client_context(end_point) if end_point.security_protocol.has_tls else None
        receiver = await connect(end_point, make_receiver, context)
        if self._receive_buffer_bytes != USE_OS_DEFAULT:
            receiver.set_socket_option(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        if end_point.security_protocol in SASL_PROTOCOLS:
            await self._authenticate(end_point, receiver)
        return receiver

    def _client_context(self, end_point: EndPoint) -> ssl.SSLContext:
        """The context for the listener, by its present certificates."""
        from odradek.storage.config.config_def import ConfigError  # loaded with the contexts, not with each command

        assert self._tls is not None, "a broker with TLS gives its contexts"
        try:
            return self._tls().client_context(end_point.listener_name)
        except ConfigError as error:
            raise ConnectionError(str(error)) from error

    async def _authenticate(self, end_point: EndPoint, receiver: AnswerReceiver) -> None:
        from odradek.broker.inter_broker.sasl_links import authenticate_link

        assert self._sasl is not None, "a broker gives the parts"
        try:
            await authenticate_link(self._config, self._sasl(), end_point, receiver)
        except BaseException as error:
            receiver.abort(error if isinstance(error, OSError) else ConnectionAbortedError("connecting was cancelled"))
            raise
