"""The network of a simulation: frames between machines, late, lost or held back, as the seed and the faults decide.

A connection is a pipe with one request in flight. Frames of one direction arrive in the order in which they were sent.
A direction that is cut holds what is sent, as TCP does: it arrives when the cut is healed, however late that is, unless
the connection was given up meanwhile; some connections are reset instead. The sender of the request then gets an
OSError, and does not know whether the request was carried out. A machine that dies resets its connections; a paused one
sends nothing.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, cast

from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.framing import SIZE_BYTES
from odradek.protocol.headers import encode_response_parts
from odradek.storage.segment.file_records import FileRegion

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.network.sockets.close_reason import CloseReason
    from odradek.controller.model.broker_info import EndPoint
    from odradek.protocol.codec.schema import Response
    from tests.support.simulation.environment.virtual_loop import Machine, VirtualLoop

USUAL_DELAY_US: Final = (50, 2_000)
LONG_DELAY_US: Final = (2_000, 400_000)
LATE_MS: Final = 3_000
ANYWHERE: Final = "anywhere"
"""A machine that is never cut off."""


class Dispatch(Protocol):
    """How a request gets into a broker: Dispatcher.dispatch."""

    def __call__(self, connection: ServerSide, frame: memoryview, received_ms: int, /) -> None: ...


class Network:
    """See the module. Directions are pairs of machine names."""

    def __init__(self, loop: VirtualLoop, rng: Random) -> None:
        self.loop = loop
        self.rng = rng
        self.loss = 0.0
        """The share of frames at which the connection is reset."""
        self.long_delay = 0.0
        """The share of frames that are slow."""
        self.late: frozenset[int] = frozenset()
        """API keys of requests that come in late, when their connection was given up before."""
        self.frames = 0
        self.digest = 0
        """Of every frame that arrived, with its time: two runs that agree in it have done the same."""
        self.on_request: dict[int, Callable[[str], None]] = {}
        """By API key: a callback for the next request of that API, called once with the name of its sender."""
        self._listening: dict[tuple[str, int], tuple[Machine, Dispatch]] = {}
        self._cut: dict[tuple[str, str], None] = {}
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._pipes: dict[Pipe, None] = {}

    # Machines

    def listen(self, address: tuple[str, int], machine: Machine, dispatch: Dispatch) -> None:
        self._listening[address] = (machine, dispatch)

    def close(self, machine: Machine) -> None:
        """The machine stops listening, and its connections are reset."""
        for address in [address for address, (owner, _) in self._listening.items() if owner is machine]:
            del self._listening[address]
        for pipe in list(self._pipes):
            if machine in (pipe.source, pipe.target):
                pipe.reset(f"{machine} is gone")

    def connect(self, source: Machine, end_point: EndPoint) -> asyncio.Future[Pipe]:
        """A connection, after the other side has answered, which may never happen."""
        connected: asyncio.Future[Pipe] = asyncio.get_running_loop().create_future()

        def arrive() -> None:
            found = self._listening.get((end_point.host, end_point.port))
            if found is None:
                refusal = ConnectionRefusedError(f"nobody listens at {end_point.host}:{end_point.port}")
                self.send((end_point.host, source.name), lambda: _settle(connected, refusal))
                return
            pipe = Pipe(self, source, *found)
            self.send((end_point.host, source.name), lambda: _settle(connected, pipe))

        self.send((source.name, end_point.host), arrive)
        return connected

    # Directions

    def is_cut(self, direction: tuple[str, str]) -> bool:
        return direction in self._cut

    def cut(self, *directions: tuple[str, str]) -> None:
        for direction in directions:
            self._cut[direction] = None

    def heal(self, *directions: tuple[str, str]) -> None:
        """Join these directions again, or all; held frames arrive."""
        for direction in directions or tuple(self._cut):
            self._cut.pop(direction, None)
            for deliver in self._held.pop(direction, ()):
                self.send(direction, deliver)

    def send(self, direction: tuple[str, str], deliver: Callable[[], None]) -> None:
        """Call something at the other end when the frame arrives; it runs outside of any machine."""
        if direction in self._cut:
            self._held.setdefault(direction, []).append(deliver)
            return

        def arrive() -> None:
            if direction in self._cut:
                self._held.setdefault(direction, []).append(deliver)
            else:
                deliver()

        self.loop.call_later(self.delay_us() / 1e6, arrive, context=self.loop.world.context)

    def delay_us(self) -> int:
        is_long = self.long_delay > 0 and self.rng.random() < self.long_delay
        shortest_us, longest_us = LONG_DELAY_US if is_long else USUAL_DELAY_US
        return shortest_us + int(self.rng.random() * (longest_us - shortest_us))

    def count(self, pipe: Pipe, frame: bytes) -> None:
        self.frames += 1
        place = f"{self.loop.now_us} {pipe.source} {pipe.target}".encode()
        self.digest = zlib.crc32(frame, zlib.crc32(place, self.digest))

    def forget(self, pipe: Pipe) -> None:
        self._pipes.pop(pipe, None)

    def remember(self, pipe: Pipe) -> None:
        self._pipes[pipe] = None


class Pipe:
    """A connection for the sender of requests. It takes the place of `network.answer_receiver.AnswerReceiver`."""

    def __init__(self, network: Network, source: Machine, target: Machine, dispatch: Dispatch) -> None:
        self.source = source
        self.target = target
        self.is_open = True
        self.usable_until_ms: int | None = None
        self._network = network
        self._dispatch = dispatch
        self._server_side = ServerSide(self)
        self._waiting: asyncio.Future[memoryview] | None = None
        network.remember(self)

    async def exchange(self, frame: bytes) -> memoryview:
        """Send a request and wait for the frame that answers it. Raises: OSError."""
        if not self.is_open:
            raise ConnectionResetError("the connection is closed")
        waiting: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        network = self._network
        is_lost = network.loss > 0 and network.rng.random() < network.loss
        if not is_lost or network.rng.random() < 0.5:
            network.send((self.source.name, self.target.name), lambda: self._arrive(frame))
        if is_lost:
            network.send((self.target.name, self.source.name), lambda: self.reset("a frame was lost"))
        return await waiting

    def abort(self, reason: OSError) -> None:
        self.reset(str(reason))

    def reset(self, reason: str) -> None:
        """End the connection: no frame arrives any more."""
        self.is_open = False
        self._network.forget(self)
        if self._waiting is not None:
            _settle(self._waiting, ConnectionResetError(reason))

    def _arrive(self, frame: bytes) -> None:
        """Runs outside of any machine. An old connection may be slower than a new one: TCP pauses longer each time."""
        network = self._network
        if not self.is_open and int.from_bytes(frame[:2], "big") in network.late:
            delay_s = network.rng.random() * LATE_MS / 1000
            network.loop.call_later(delay_s, self._hand_over, frame, context=network.loop.world.context)
        else:
            self._hand_over(frame)

    def _hand_over(self, frame: bytes) -> None:
        """To the machine."""
        if self.target.is_alive:
            loop = self._network.loop
            loop.call_soon(self._handle, frame, context=self.target.context)

    def _handle(self, frame: bytes) -> None:
        self._network.count(self, frame)
        tripped = self._network.on_request.pop(int.from_bytes(frame[:2], "big"), None)
        if tripped is not None:
            self._network.send((ANYWHERE, ANYWHERE), lambda: tripped(self.source.name))
        # Requests that were under way when the connection was given up are carried out all the same.
        self._dispatch(self._server_side, memoryview(frame), self._network.loop.now_us // 1000)

    def answer(self, frame: bytes) -> None:
        network = self._network
        if network.loss > 0 and network.rng.random() < network.loss:
            network.send((self.target.name, self.source.name), lambda: self.reset("the answer was lost"))
        else:
            network.send((self.target.name, self.source.name), lambda: self._answered(frame))

    def _answered(self, frame: bytes) -> None:
        self._network.count(self, frame)
        if self.is_open and self._waiting is not None:
            _settle(self._waiting, memoryview(frame))


class ServerSide:
    """A connection as handlers see it. Implements `request.ClientConnection`."""

    listener_name = "PLAINTEXT"
    client_port = 40_000
    local_port = 9092
    principal = "User:ANONYMOUS"
    security_protocol = SecurityProtocol.PLAINTEXT
    is_token_authenticated = False
    is_own_broker = False
    is_authenticated = True
    authentication = None

    def __init__(self, pipe: Pipe) -> None:
        self.client_host = pipe.source.name
        self.local_host = pipe.target.name
        self.client_software_name = ""
        self.client_software_version = ""
        self._pipe = pipe

    def begin(self, ctx: RequestContext) -> None: ...

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        if ctx.answer is not None:
            self._pipe.answer(b"".join(map(bytes, cast("list[bytes]", ctx.answer)))[SIZE_BYTES:])
            return
        if response is None:
            return
        header = ctx.header
        parts = encode_response_parts(header.api_key, header.api_version, header.correlation_id, response)
        self._pipe.answer(
            b"".join(part.read() if isinstance(part, FileRegion) else bytes(cast("bytes", part)) for part in parts)
        )

    def flush_answers(self) -> None: ...

    def proceed(self) -> None:
        """Nothing waits: a simulated client sends its next request behind the answer."""

    def refuse(self, ctx: RequestContext, reason: str) -> None:
        self._pipe.reset(reason)

    def close(self, reason: str, *, reset: bool = False) -> None:
        self._pipe.reset(reason)

    def close_after_answers(self, reason: CloseReason, detail: str = "", ctx: RequestContext | None = None) -> None:
        self.abort(reason, detail)

    def abort(self, reason: CloseReason, detail: str = "") -> None:
        self._pipe.reset(detail or reason.name)


def _settle(future: asyncio.Future[object] | asyncio.Future[Pipe] | asyncio.Future[memoryview], result: object) -> None:
    if future.done():
        return
    if isinstance(result, OSError):
        future.set_exception(result)
    else:
        cast("asyncio.Future[object]", future).set_result(result)
