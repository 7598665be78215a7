"""The ports of the client listeners, as `KafkaServer` and changes of configs see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.endpoint import EndPoint
    from odradek.broker.network.connection.connection import Connection
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


class Listening(Protocol):
    """The part of the sockets that depends on configs. Implemented by `network.socket_server.SocketServer`."""

    @property
    def end_points(self) -> tuple[EndPoint, ...]:
        """The listeners with their bound ports."""

    async def update_listeners(self) -> None:
        """Open and close listeners. Raises: StartupError."""

    def limits_changed(self) -> None: ...

    def update_ip_connection_rate_quota(self, ip: str | None, rate: float | None) -> None: ...


class Sockets(Listening, Protocol):
    """The client listeners. Implemented by `network.socket_server.SocketServer`."""

    async def open(self) -> tuple[EndPoint, ...]: ...

    def start_accepting(self) -> None: ...

    def stop_accepting(self) -> None: ...

    async def close(self) -> None: ...


class MakeSockets(Protocol):
    def __call__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: SystemTimer,
        io_pool: IoPool,
        dispatch: Callable[[Connection, memoryview, int], None],
        /,
    ) -> Sockets: ...
