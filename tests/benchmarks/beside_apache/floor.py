"""The least that a server on asyncio costs for a Produce, beside both brokers: how far a broker in Python can get.

The server below does only what no broker can leave out: it receives a frame, compares the checksum of the batch, gives
it an offset, writes it to a file and answers. It knows where the batch is in the frame, and its answer is prepared. It
decodes nothing, keeps no index, has no limits, errors, metrics, timers, followers or other connections.

Each gets the same frame from the same client, one at a time, in turn. Before, the brokers get `WARM_UP_REQUESTS`, or
`WARM_UP_BYTES` if that is less. The last column is what a broker on asyncio cannot get below, in times of Apache
Kafka's figure.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from struct import Struct
from typing import Final

import uvloop
from crc32c import crc32c

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.layout import ATTRIBUTES_POSITION, CRC_POSITION
from tests.benchmarks.contenders import Contenders, create_topic, frame_of
from tests.benchmarks.measure import percentile, usage_of
from tests.benchmarks.workloads.records.latency import PRODUCE_VERSION, exchange
from tests.support.wire.requests import batch, build

SIZES: Final = {"1 record of 100 B": (1, 100), "16 records of 1,000 B": (16, 1_000), "128 of 1,000 B": (128, 1_000)}
TURNS: Final = 5
TURN_BYTES: Final = 300_000_000
TURN_REQUESTS: Final = 10_000
WARM_UP_BYTES: Final = 2_000_000_000
WARM_UP_REQUESTS: Final = 100_000
FILE_BYTES: Final = 1 << 28
"""Both brokers and the server begin a new file then, and drop the old one."""
RECEIVE_BYTES: Final = 1 << 18
TOPIC: Final = "floor"
RETENTION: Final = {"segment.bytes": str(FILE_BYTES), "retention.bytes": str(FILE_BYTES)}

_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_CHECKSUM: Final = Struct(">I")


def run(contenders: Contenders) -> None:
    odradek, apache = contenders.new("Odradek", "floor"), contenders.new("Apache", "floor")
    try:
        odradek.start()
        apache.start()
        for number, (name, (records, size)) in enumerate(SIZES.items()):
            topic = f"{TOPIC}-{number}"
            for broker in (odradek, apache):
                create_topic(broker, topic, 1, RETENTION)
            data = bytes(batch(*[bytes(size)] * records))
            frame = frame_of(produce(topic, data), PRODUCE_VERSION)
            with served(frame, data) as floor:
                compare(
                    name,
                    frame,
                    {
                        "floor": floor,
                        "Odradek": Measured(odradek.pid, (odradek.host, odradek.port)),
                        "Apache": Measured(apache.pid, (apache.host, apache.port)),
                    },
                )
    finally:
        odradek.close()
        apache.close()


def produce(topic: str, data: bytes) -> Request:
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    return build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=topics)


@dataclass(frozen=True, slots=True)
class Measured:
    """One server."""

    pid: int
    address: tuple[str, int]

    def turn(self, frame: bytes, count: int) -> dict[str, float]:
        """The figures of `count` requests, one after the other."""
        with socket.create_connection(self.address) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            before = usage_of(self.pid)
            latencies = sorted(exchange(client, frame, count))
            used = usage_of(self.pid) - before
        return {
            "CPU, µs": used.total_s / count * 1e6,
            "of it user, µs": used.user_s / count * 1e6,
            "p50, ms": percentile(latencies, 0.5) * 1e3,
        }


def compare(name: str, frame: bytes, servers: dict[str, Measured]) -> None:
    for label, server in servers.items():
        if label != "floor":
            server.turn(frame, min(WARM_UP_REQUESTS, WARM_UP_BYTES // len(frame)))
    count = min(TURN_REQUESTS, TURN_BYTES // len(frame))
    turns: dict[str, list[dict[str, float]]] = {label: [] for label in servers}
    for _ in range(TURNS):
        for label, server in servers.items():
            turns[label].append(server.turn(frame, count))
    print(f"\n{name:<28}{''.join(f'{label:>10}' for label in servers)}{'Odradek/Apache':>18}{'floor/Apache':>15}")
    for figure in turns["floor"][0]:
        medians = {label: median(turn[figure] for turn in found) for label, found in turns.items()}
        cells = "".join(f"{value:>10.3f}" if value < 1 else f"{value:>10.1f}" for value in medians.values())
        ratios = [medians[label] / medians["Apache"] for label in ("Odradek", "floor")]
        print(f"{figure:<28}{cells}{ratios[0]:>18.2f}{ratios[1]:>15.2f}", flush=True)


@contextmanager
def served(frame: bytes, data: bytes) -> Iterator[Measured]:
    """The least server in a process of its own, for requests like `frame`."""
    at = frame.index(data)
    with tempfile.TemporaryFile() as records:
        command = [sys.executable, "-m", __name__, str(records.fileno()), str(at), str(at + len(data)), str(len(frame))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[records.fileno()])
        try:
            assert process.stdout is not None
            yield Measured(process.pid, ("127.0.0.1", int(process.stdout.readline())))
        finally:
            process.kill()
            process.wait()


class LeastServer(asyncio.BufferedProtocol):
    """One connection. All frames are alike: of `frame_bytes`, with a batch from `start` to `end`."""

    def __init__(self, fd: int, start: int, end: int, frame_bytes: int) -> None:
        self._fd = fd
        self._space = memoryview(bytearray(RECEIVE_BYTES))
        self._frame = self._space[:frame_bytes]
        self._batch = self._space[start:end]
        self._checked = self._batch[ATTRIBUTES_POSITION:]
        self._received = 0
        self._offset = self._position = 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        os.ftruncate(self._fd, 0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._space[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        self._received += nbytes
        frame, data = self._frame, self._batch
        if self._received < len(frame):
            return
        (checksum,) = _CHECKSUM.unpack_from(data, CRC_POSITION)
        assert crc32c(self._checked) == checksum
        _INT64.pack_into(data, 0, self._offset)
        self._offset += 1
        os.pwritev(self._fd, [data], self._position)
        self._position += len(data)
        if self._position > FILE_BYTES:
            os.ftruncate(self._fd, 0)
            self._position = 0
        self._received = 0
        (correlation_id,) = _INT32.unpack_from(frame, 8)
        self._transport.write(_INT32.pack(len(_ANSWER) + 4) + _INT32.pack(correlation_id) + _ANSWER)


_ANSWER: Final = bytes(50)
"""About as long as that of a broker. The client counts its bytes."""


async def serve(fd: int, start: int, end: int, frame_bytes: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LeastServer(fd, start, end, frame_bytes), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(*map(int, sys.argv[1:])))
