"""Connections with TLS on both event loops: slow readers cost little memory, what came before the end is applied."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from tests.conformance.security.conftest import Certificates
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_topics import end_offset, make_topic
from tests.support.wire.requests import batch, build

MB = 1_000_000
STORED_MB = 40
READERS = 10
MEMORY_OF_A_READER_MB = 2
"""Copied records that wait, encrypted ones, and the buffers of the library. A reader that has all has 40."""
TIMEOUT_S = 20
MANY = 2000
"""Requests that take longer than a turn of their connection: some are left when the end comes."""


class TlsBroker:
    """A broker with a plaintext and a TLS listener."""

    def __init__(self, directory: Path, certificates: Certificates, event_loop: str) -> None:
        plain, self.port = free_port(), free_port()
        settings = certificates.broker_settings(
            **{
                "listeners": f"PLAINTEXT://127.0.0.1:{plain},CLIENTS://127.0.0.1:{self.port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
            }
        )
        self.broker = OdradekBroker(directory, settings, plain)
        self.broker.options = ["--event-loop", event_loop]
        self._context = certificates.context(certificates.client)

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        return self._context.wrap_socket(plain, server_hostname="localhost")

    @property
    def memory_mb(self) -> float:
        return psutil.Process(self.broker.pid).memory_info().rss / MB


@pytest.fixture(params=["uvloop", "asyncio"])
def served(request: pytest.FixtureRequest, certificates: Certificates, tmp_path: Path) -> Iterator[TlsBroker]:
    served = TlsBroker(tmp_path / "broker", certificates, request.param)
    served.broker.start()
    yield served
    served.broker.stop_cleanly()


def frame(request: Request, version: int) -> bytes:
    payload = encode_request(RequestHeader(request.API_KEY, version, 7, "raw"), request)
    return struct.pack(">i", len(payload)) + payload


def produce(topic: str, value: bytes, acks: int) -> bytes:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(value)}]}]
    return frame(build(ApiKey.PRODUCE, acks=acks, timeout_ms=5_000, topic_data=data), 9)


def receive(connection: ssl.SSLSocket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        assert chunk, "the connection was closed"
        received += chunk
    return bytes(received)


def test_slow_readers_cost_little_memory(served: TlsBroker) -> None:
    topic = "stored"
    make_topic(served.broker, topic)
    values = [bytes([number]) * (MB - 1000) for number in range(STORED_MB)]
    with served.connect() as connection:
        for value in values:
            connection.sendall(produce(topic, value, acks=1))
            (size,) = struct.unpack(">i", receive(connection, 4))
            receive(connection, size)
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 30}
    topics = [{"topic": topic, "partitions": [wanted]}]
    request = build(ApiKey.FETCH, replica_id=-1, max_wait_ms=10, min_bytes=1, max_bytes=1 << 30, topics=topics)
    before_mb = served.memory_mb
    readers = [served.connect() for _ in range(READERS)]
    for reader in readers:
        reader.sendall(frame(request, 11))
    sizes = [struct.unpack(">i", receive(reader, 4))[0] for reader in readers]
    assert min(sizes) > STORED_MB * (MB - 2000)
    assert served.memory_mb - before_mb < READERS * MEMORY_OF_A_READER_MB
    answer = receive(readers[0], sizes[0])
    assert all(value in answer for value in values)
    for reader in readers:
        reader.close()


@pytest.mark.parametrize("ends", ["close_notify", "without close_notify"])
def test_what_came_before_the_end_is_applied(served: TlsBroker, ends: str) -> None:
    topic = "ended"
    make_topic(served.broker, topic)
    connection = served.connect()
    sizes = (10, 200_000, 30_000, 10, 400_000, *[10] * MANY)
    frames = [produce(topic, b"x" * size, acks=0) for size in sizes]
    connection.sendall(b"".join(frames))
    if ends == "close_notify":
        connection.unwrap().close()
    else:
        connection.shutdown(socket.SHUT_WR)
    eventually(lambda: end_offset(served.broker, topic) == len(frames))
    connection.close()
    assert "returning true from eof_received" not in served.broker.log_text()


def test_answers_are_whole_before_a_request_closes_the_connection(served: TlsBroker) -> None:
    """The layer of TLS still holds the end of an answer when everything is handed to it."""
    topic, answer_mb = "answered", 5
    make_topic(served.broker, topic)
    with served.connect() as connection:
        for _ in range(answer_mb):
            connection.sendall(produce(topic, bytes(MB - 1000), acks=1))
            (size,) = struct.unpack(">i", receive(connection, 4))
            receive(connection, size)
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 30}
        topics = [{"topic": topic, "partitions": [wanted]}]
        request = build(ApiKey.FETCH, replica_id=-1, max_wait_ms=10, min_bytes=1, max_bytes=1 << 30, topics=topics)
        connection.sendall(frame(request, 11) + produce("unknown", b"x", acks=0))
        (size,) = struct.unpack(">i", receive(connection, 4))
        assert size > answer_mb * (MB - 1000)
        receive(connection, size)
        assert connection.recv(1) == b""
