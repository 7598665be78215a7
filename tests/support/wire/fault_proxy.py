"""A TCP proxy in front of a broker, which reads whole requests and applies its faults to each.

The broker gives out the proxy's address by `advertised.listeners`, so clients stay behind it. Answers reach a client in
the order of its requests, each once, whatever the broker was sent.

A request that is replayed, or whose client has gone while it was delayed, is late. A late request that ends a
transaction or adds to it is only sent after a producer with a newer epoch has followed: before Kafka 4.0 (KIP-890, part
2) the epoch stays the same from one transaction to the next, and a request that comes after its own transaction counts
for the next one. All other requests come late to the same producer, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from odradek.broker.dispatch import FROM_THE_CONTROLLER
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Struct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import (
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_response_parts,
)
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.support.broker import Broker
from tests.support.processes.ports import LOOPBACK
from tests.support.wire.faults import Fault, Faults
from tests.support.wire.proxy_server import ProxyServer, closing

ANSWER_TIMEOUT_S = 15
ENDS_OF_CONNECTIONS = (OSError, asyncio.IncompleteReadError)
OF_ONE_TRANSACTION = frozenset({ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.PRODUCE})


class Exchange:
    """One request of a client, and its state."""

    def __init__(self, frame: bytes, fault: Fault) -> None:
        self.header, _ = decode_request_header(frame)
        self.frame = frame
        self.fault = fault
        self.answer: bytes | None = None
        self.answers_due = 2 if fault is Fault.DUPLICATE else 1


class FaultProxy:
    """`broker` is to be set before the first client connects."""

    host = LOOPBACK

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.broker: Broker | None = None
        self.late: Counter[tuple[str, int]] = Counter()
        """APIs of late requests, and the error code that each was answered with."""
        self.is_shut_to_clients = False
        """Their requests end their connections; brokers are let through."""
        self._waiting: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._server = ProxyServer(lambda reader, writer: _Connection(self, reader, writer).run())
        self.port = self._server.port
        self.bootstrap = self._server.address
        self.start = self._server.start

    def close(self) -> None:
        self._server.close()
        assert not self._server.failures, "a bug of this proxy"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert self.broker is not None
        return await asyncio.open_connection(self.broker.host, self.broker.port)

    # -- late requests ----------------------------------------------------------------------------------------

    def come_late(self, exchange: Exchange) -> None:
        transactional_id = transactional_id_of(exchange)
        if exchange.header.api_key in OF_ONE_TRANSACTION and transactional_id is not None:
            self._waiting[transactional_id].append(exchange)
        else:
            self._server.spawn(self._send_late(exchange))

    def note_answer(self, exchange: Exchange) -> None:
        """Note a producer that got an id or an epoch: it follows all earlier ones."""
        if exchange.header.api_key != ApiKey.INIT_PRODUCER_ID or error_of(exchange) != 0:
            return
        for late in self._waiting.pop(transactional_id_of(exchange) or "", []):
            self._server.spawn(self._send_late(late))

    async def _send_late(self, exchange: Exchange) -> None:
        await asyncio.sleep(self.faults.delay_s())
        with contextlib.suppress(*ENDS_OF_CONNECTIONS):
            reader, writer = await self.connect()
            async with closing(writer):
                writer.write(framed(exchange.frame))
                late = Exchange(exchange.frame, Fault.NONE)
                late.answer = await asyncio.wait_for(read_frame(reader), ANSWER_TIMEOUT_S)
                self.late[API[late.header.api_key].name, error_of(late)] += 1


@contextmanager
def behind_proxy(
    make_broker: Callable[[dict[str, str]], Broker], faults: Faults, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[Broker, FaultProxy]]:
    """A broker, made of its settings, that is started and tells its clients to come to a proxy."""
    proxy = FaultProxy(faults)
    broker = make_broker({"advertised.listeners": f"PLAINTEXT://{proxy.bootstrap}", **(settings or {})})
    proxy.broker = broker
    proxy.start()
    try:
        broker.start()
        yield broker, proxy
    finally:
        broker.close()
        proxy.close()


class _Connection:
    """One client and the connection to the broker that was opened for it."""

    def __init__(self, proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = reader, writer
        self._received: asyncio.Queue[Exchange | None] = asyncio.Queue()
        self._unanswered: deque[Exchange] = deque()
        """In the order of the client."""
        self._sent: deque[Exchange] = deque()
        """In the order of the broker, once for each answer it owes."""

    async def run(self) -> None:
        """Serve it until either side, or a fault, ends it."""
        with contextlib.suppress(*ENDS_OF_CONNECTIONS):
            reader, writer = await self._proxy.connect()
            async with closing(writer):
                parts = [asyncio.ensure_future(p) for p in (self._receive(), self._send(writer), self._answer(reader))]
                try:
                    done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
                    for part in done:
                        part.result()
                finally:
                    for part in parts:
                        part.cancel()
                    await asyncio.gather(*parts, return_exceptions=True)

    async def _receive(self) -> None:
        """Ends with the client, unless requests of it still wait for their delay: `_send` finds out."""
        try:
            while True:
                frame = await read_frame(self._client[0])
                header, _ = decode_request_header(frame)
                if self._proxy.is_shut_to_clients and not is_of_a_broker(header):
                    return
                fault = Fault.NONE if is_of_a_broker(header) else self._proxy.faults.next_fault(header)
                exchange = Exchange(frame, fault)
                self._unanswered.append(exchange)
                self._received.put_nowait(exchange)
        except ENDS_OF_CONNECTIONS:
            self._received.put_nowait(None)
        await asyncio.Event().wait()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        while (exchange := await self._received.get()) is not None and await self._send_one(exchange, writer):
            pass

    async def _send_one(self, exchange: Exchange, writer: asyncio.StreamWriter) -> bool:
        """False ends the connection."""
        if exchange.fault is Fault.DELAY:
            await asyncio.sleep(self._proxy.faults.delay_s())
            if self._client[0].at_eof():
                self._proxy.come_late(exchange)
                return False
        if exchange.fault is Fault.CUT_BEFORE:
            return False
        if exchange.fault is Fault.REFUSE:
            exchange.answer, exchange.answers_due = refusal(exchange), 0
            await self._hand_over()
        if exchange.fault is Fault.REPLAY:
            self._proxy.come_late(exchange)
        for _ in range(exchange.answers_due):
            self._sent.append(exchange)
            writer.write(framed(exchange.frame))
        await writer.drain()
        return True

    async def _answer(self, reader: asyncio.StreamReader) -> None:
        while True:
            answer = await read_frame(reader)
            exchange = self._sent.popleft()
            exchange.answer = answer
            exchange.answers_due -= 1
            if exchange.answers_due:
                continue
            self._proxy.note_answer(exchange)
            if exchange.fault is Fault.CUT_AFTER:
                return
            await self._hand_over()

    async def _hand_over(self) -> None:
        """Send the client the answers that are ready, in order."""
        while self._unanswered and not self._unanswered[0].answers_due:
            ready = self._unanswered.popleft().answer
            assert ready is not None
            self._client[1].write(framed(ready))
        await self._client[1].drain()


def is_of_a_broker(header: RequestHeader) -> bool:
    """Whether a broker sent it: its requests are left alone.

    Apache's controller reaches its own broker by the advertised address, which is the proxy's. Brokers verify
    transactions with an API of clients, in versions of their own.
    """
    verifies = header.api_key == ApiKey.ADD_PARTITIONS_TO_TXN and header.api_version >= 4
    return verifies or header.api_key in FROM_THE_CONTROLLER


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def transactional_id_of(exchange: Exchange) -> str | None:
    _, request = decode_request(exchange.frame)
    return getattr(request, "transactional_id", None)


def refusal(exchange: Exchange) -> bytes:
    """The answer to a Produce that there are not enough replicas now."""
    header, request = decode_request(exchange.frame)
    assert isinstance(request, ProduceRequest)
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index, error_code=ErrorCode.NOT_ENOUGH_REPLICAS, base_offset=-1
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    parts = encode_response_parts(header.api_key, header.api_version, header.correlation_id, answer)
    return b"".join(bytes(part) for part in parts)


def error_of(exchange: Exchange) -> int:
    """The first error code in an answer, or 0."""
    assert exchange.answer is not None
    _, answer = decode_response(exchange.header.api_key, exchange.header.api_version, exchange.answer)
    return next(filter(None, _error_codes(answer)), 0)


def _error_codes(answer: Struct) -> Iterator[int]:
    for field in answer.FIELDS:
        value = getattr(answer, field.name)
        if field.name.endswith("error_code"):
            yield value
        for item in value if isinstance(value, list) else []:
            if isinstance(item, Struct):
                yield from _error_codes(item)
