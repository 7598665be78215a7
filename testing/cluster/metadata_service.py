"""The metadata service of a cluster for tests: `broker/zookeeper` in a thread, with a relay for each broker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.zookeeper.server import ZooKeeperServer
from odradek.broker.zookeeper.service_settings import make_settings
from odradek.controller.model.broker_info import NO_CONTROLLER
from odradek.controller.znodes.znodes import CONTROLLER, decode_controller
from odradek.testing.cluster.relay import HOST, Relay
from odradek.testing.errors import BrokerStopped
from odradek.testing.node.forks import RUNS_ELSEWHERE, keep_out_of_forks
from odradek.testing.node.loop_calls import LoopCalls
from odradek.timer.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from odradek.broker.zookeeper.requests.request_processor import RequestProcessor

T = TypeVar("T")

TICK_MS: Final = 100
"""Session time-outs end within one tick, so sessions end quickly after theirs."""
_LOOK_AGAIN_S: Final = 0.01


class MetadataService:
    """Facade of the thread: its methods block. `stop` and `start` keep port, data and sessions."""

    def __init__(self, directory: str, port: int) -> None:
        """`port`: 0 for one that the system chooses at the first start."""
        self._home = os.getpid()
        """The process that has the thread. A fork of it must not touch the loop or its locks."""
        self._directory = directory
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._calls = LoopCalls(self._loop)
        self._closing: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="odradek-zookeeper", daemon=True)
        self._server: ZooKeeperServer | None = None
        self._relays: dict[int, Relay] = {}
        keep_out_of_forks(self)

    @property
    def address(self) -> str:
        """`host:port` without a relay between, for a client of the test."""
        return f"127.0.0.1:{self._port}"

    @property
    def is_running(self) -> bool:
        return self._server is not None

    def open(self) -> None:
        """Start the thread and the service. Raises: StartupError."""
        self._thread.start()
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start the service, on the port and with the data of the last time. Raises: StartupError."""
        self._call(self._start)

    def stop(self) -> None:
        """Stop the service: brokers wait until it is back. Their sessions go on if that is within the time-out."""
        self._call(self._stop)

    def close(self) -> None:
        """Stop the service and end the thread."""
        self._call(self._close)
        self._thread.join()

    def address_for(self, broker_id: int) -> str:
        """The `zookeeper.connect` of that broker."""
        return self._call(partial(self._relay_for, broker_id))

    def cut(self, broker_ids: set[int]) -> None:
        """Cut the ways of these brokers, and heal all others."""
        self._call(partial(self._cut, broker_ids))

    def expire_session(self, broker_id: int) -> bool:
        """End the session of a broker now, as after its time-out. False if the broker has none."""
        return self._call(partial(self._expire, broker_id))

    def controller_among(self, broker_ids: Collection[int], timeout_s: float) -> int | None:
        """Wait until one of these brokers is the controller; None if none is after `timeout_s`.

        Brokers that are cut off from the controller would answer with the last one that they have known.
        """
        return self._call(partial(self._controller_among, broker_ids, timeout_s))

    def listening_addresses(self) -> list[tuple[str, int]]:
        """Implements `Listening`."""
        ports = [relay.port for relay in self._relays.values()]
        return [(HOST, port) for port in (ports if self._server is None else [self._port, *ports])]

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Raises: BrokerStopped after `close`, and in a forked process."""
        if os.getpid() != self._home:
            raise BrokerStopped(RUNS_ELSEWHERE)
        return self._calls.submit(work).result()

    # In the thread

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._closing
        self._calls.close("The metadata service does not run")

    async def _start(self) -> None:
        if self._server is not None:
            raise RuntimeError("the metadata service runs already")
        fields: dict[str, object] = {
            "directory": self._directory,
            "port": self._port,
            "tick_time_ms": TICK_MS,
            "max_session_timeout_ms": 3_600_000,
            "max_client_connections": 0,
        }
        server = ZooKeeperServer(make_settings(fields), SystemClock())
        await server.start()
        self._server, self._port = server, server.port

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _close(self) -> None:
        try:
            await asyncio.gather(*(relay.close() for relay in self._relays.values()))
            self._relays.clear()
            await self._stop()
            await asyncio.sleep(0)  # connections that were closed are gone in the next turn of the loop
        finally:
            self._closing.set_result(None)

    async def _relay_for(self, broker_id: int) -> str:
        if broker_id not in self._relays:
            relay = Relay(self._port)
            await relay.start()
            self._relays[broker_id] = relay
        return f"127.0.0.1:{self._relays[broker_id].port}"

    async def _cut(self, broker_ids: set[int]) -> None:
        for broker_id, relay in self._relays.items():
            if broker_id in broker_ids:
                relay.cut()
            else:
                relay.heal()

    async def _expire(self, broker_id: int) -> bool:
        if self._server is None:
            raise StartupError("the metadata service does not run")

        def expire(processor: RequestProcessor) -> str:
            node = processor.tree.find(f"/brokers/ids/{broker_id}")
            if node is None:
                return ""
            processor.end_session(node.ephemeral_owner)
            return "ended"

        return bool(await self._server.thread.ask(expire))

    async def _controller_among(self, broker_ids: Collection[int], timeout_s: float) -> int | None:
        def look(processor: RequestProcessor) -> str:
            node = processor.tree.find(CONTROLLER)
            return "" if node is None else (node.data or b"").decode("latin-1")

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    if self._server is None:
                        raise StartupError("the metadata service does not run")
                    content = (await self._server.thread.ask(look)).encode("latin-1")
                    controller = decode_controller(content)[0] if content else NO_CONTROLLER
                    if controller in broker_ids:
                        return controller
                    await asyncio.sleep(_LOOK_AGAIN_S)
        return None
