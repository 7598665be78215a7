"""What the network layer costs: `python -m tests.benchmarks.parts.bench_network [--loop uvloop|asyncio]`.

A child process runs the broker's own SocketServer, Connection and Dispatcher with handlers that do nothing; this
process sends and receives. Processor time is that of the child alone, kernel included, so that it holds against a
loaded machine better than rates do. Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable
from time import perf_counter

import psutil

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SEGMENT_BYTES = 64 << 20
MODULE = "tests.benchmarks.parts.bench_network"


class Server:
    """The child process."""

    def __init__(self, loop: str, **settings: str) -> None:
        command = [sys.executable, "-m", MODULE, "--serve", "--loop", loop]
        environment = {**os.environ, "BENCH_SETTINGS": ",".join(f"{key}={value}" for key, value in settings.items())}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self._measured = psutil.Process(self._process.pid)

    def cpu_s(self) -> float:
        times = self._measured.cpu_times()
        return times.user + times.system

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def framed(request: bytes) -> bytes:
    return struct.pack(">i", len(request)) + request


def drain(client: socket.socket, count: int, buffer: bytearray) -> None:
    while count:
        count -= client.recv_into(buffer, min(count, len(buffer)))


def response_size(client: socket.socket, request: bytes) -> int:
    client.sendall(request)
    (size,) = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))
    drain(client, size, bytearray(1 << 20))
    return 4 + int(size)


def exchange(server: Server, request: bytes, count: int, depth: int) -> tuple[float, float]:
    """Wall and processor seconds for `count` requests, `depth` of them under way at a time."""
    with server.connect() as client:
        size = response_size(client, request)
        buffer = bytearray(1 << 20)
        cpu, started = server.cpu_s(), perf_counter()
        if depth == 1:
            for _ in range(count):
                client.sendall(request)
                drain(client, size, buffer)
        else:
            sender = threading.Thread(target=lambda: [client.sendall(request * depth) for _ in range(count // depth)])
            sender.start()
            drain(client, size * (count // depth) * depth, buffer)
            sender.join()
        return perf_counter() - started, server.cpu_s() - cpu


def bench_small(server: Server) -> None:
    request = framed(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 1, "bench"), HeartbeatRequest(group_id="g")))
    for name, count, depth in (("one at a time", 20_000, 1), ("pipelined, 100 deep", 100_000, 100)):
        wall, cpu = exchange(server, request, count, depth)
        print(f"Heartbeat, {name:<22} {count / wall:>10.0f} req/s {cpu / count * 1e6:>8.1f} µs CPU per request")


def bench_produce(server: Server) -> None:
    for size in (1 << 10, 16 << 10, 128 << 10, 1 << 20):
        data = PartitionProduceData(index=0, records=bytes(size))
        body = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        request = framed(encode_request(RequestHeader(ApiKey.PRODUCE, 9, 1, "bench"), body))
        bench_bytes(server, "Produce, one at a time", request, size, max(300, min(20_000, (1 << 29) // size)))


def bench_fetch(server: Server, label: str) -> None:
    for size in (1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 1 << 20, 8 << 20):
        body = FetchRequest(
            max_bytes=size,
            topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=size)])],
        )
        request = framed(encode_request(RequestHeader(ApiKey.FETCH, 11, 1, "bench"), body))
        bench_bytes(server, f"Fetch {label}", request, size, max(60, min(10_000, (1 << 30) // size)))


def bench_bytes(server: Server, label: str, request: bytes, size: int, count: int) -> None:
    wall, cpu = exchange(server, request, count, 1)
    gigabytes = count * size / 1e9
    print(
        f"{label:<22} {size >> 10:>5} KiB {gigabytes / wall:>10.2f} GB/s "
        f"{cpu / count * 1e6:>8.1f} µs CPU per request {cpu / gigabytes * 1000:>8.0f} ms CPU per GB"
    )


def serve(loop_name: str) -> None:
    """The child: handlers that answer at once, a fetch with a region of one hot segment."""
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.dispatch import Dispatcher
    from odradek.broker.machine.io_pool import ThreadIoPool
    from odradek.broker.machine.ticker import Ticker
    from odradek.broker.metadata.first_metadata import FirstMetadata
    from odradek.broker.network.listeners.socket_server import SocketServer
    from odradek.broker.network.responses import response_sender
    from odradek.timer.clock import SystemClock
    from odradek.timer.sliced_work import SlicedWork
    from odradek.timer.system_timer import SystemTimer

    for setting in filter(None, os.environ.get("BENCH_SETTINGS", "").split(",")):
        name, _, value = setting.partition("=")
        setattr(response_sender, name, int(value))
    modules = {key: f"{MODULE}_handlers.{key.name}" for key in (ApiKey.HEARTBEAT, ApiKey.PRODUCE, ApiKey.FETCH)}
    with tempfile.TemporaryFile() as segment:
        segment.write(os.urandom(1 << 20) * (SEGMENT_BYTES >> 20))
        segment.flush()
        for key, name in modules.items():
            module = types.ModuleType(name)
            module.handle = HANDLERS[key](segment.fileno())  # type: ignore[attr-defined]
            sys.modules[name] = module

        async def run() -> None:
            loop = asyncio.get_running_loop()
            clock = SystemClock()
            config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"})
            services = types.SimpleNamespace(config=config, clock=clock)
            timer = SystemTimer(clock)
            Ticker(loop, clock, timer).start()
            first_metadata = FirstMetadata(timer, loop.call_soon, has_topics=False)
            first_metadata.arrived(names_partitions=False)
            slices = SlicedWork(timer, clock, in_turns=True)
            dispatcher = Dispatcher(services, asyncio.ensure_future, first_metadata, slices, modules)  # type: ignore[arg-type]
            server = SocketServer(config, clock, timer, ThreadIoPool(loop), dispatcher.dispatch)
            (end_point,) = await server.open()
            server.start_accepting()
            print(end_point.port, flush=True)
            await loop.create_future()

        if loop_name == "uvloop":
            import uvloop

            uvloop.run(run())
        else:
            asyncio.run(run())


class Region:
    """A region of the segment, as `storage.file_records.FileRegion`."""

    __slots__ = ("_fd", "position", "size_in_bytes")

    def __init__(self, fd: int, position: int, size_in_bytes: int) -> None:
        self._fd = fd
        self.position = position
        self.size_in_bytes = size_in_bytes

    def fileno(self) -> int:
        return self._fd

    def retain(self) -> None:
        pass

    def release(self) -> None:
        pass


def heartbeat_handler(fd: int) -> Callable[..., None]:
    from odradek.protocol.messages.heartbeat import HeartbeatResponse

    return lambda broker, ctx, request: ctx.reply(HeartbeatResponse())


def produce_handler(fd: int) -> Callable[..., None]:
    from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

    def handle(broker: object, ctx: object, request: ProduceRequest) -> None:
        responses = [TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse()])]
        ctx.reply(ProduceResponse(responses=responses))  # type: ignore[attr-defined]

    return handle


def fetch_handler(fd: int) -> Callable[..., None]:
    from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

    positions = iter(range(0, 1 << 60, 1 << 20))

    def handle(broker: object, ctx: object, request: FetchRequest) -> None:
        region = Region(fd, next(positions) % (SEGMENT_BYTES - request.max_bytes), request.max_bytes)
        data = PartitionData(records=region)
        ctx.reply(FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])]))  # type: ignore[attr-defined]

    return handle


HANDLERS = {ApiKey.HEARTBEAT: heartbeat_handler, ApiKey.PRODUCE: produce_handler, ApiKey.FETCH: fetch_handler}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loop", default="uvloop", choices=("uvloop", "asyncio"))
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.loop)
        return
    server = Server(arguments.loop)
    try:
        bench_small(server)
        bench_produce(server)
        bench_fetch(server, "as served")
    finally:
        server.close()
    for label, threshold in (("sendfile", 0), ("copied", 1 << 30)):
        server = Server(arguments.loop, COPY_REGION_BYTES=str(threshold))
        try:
            bench_fetch(server, label)
        finally:
            server.close()


if __name__ == "__main__":
    main()
