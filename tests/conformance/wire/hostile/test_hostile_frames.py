"""Bytes that no client would send: a closed connection, a line in the log, never a traceback, never unbounded memory.

The broker must go on serving, and a second pass over everything must not need more memory than the first: growth with
each hostile client is a leak.
"""

from __future__ import annotations

import gc
import random
import socket
import struct
import time
from collections.abc import Iterator

import psutil
import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient

MAX_REQUEST_BYTES = 104_857_600  # socket.request.max.bytes
MAX_GROWTH_BYTES = 16 << 20
TAGGED_FIELDS = 20_000_000
INT_MAX = 2**31 - 1


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(key: int, version: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", key, version, 1, 2) + b"me" + (b"\0" if flexible else b"")


OF_THE_CONTROLLER = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
)
"""Without an authorizer anybody may send these, and a broker obeys them."""

NO_FRAMES = {
    "largest size": struct.pack(">i", INT_MAX),
    "one byte more than allowed": struct.pack(">i", MAX_REQUEST_BYTES + 1),
    "size -1": struct.pack(">i", -1),
    "smallest size": struct.pack(">i", -(2**31)),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS client hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(506),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
}

NO_REQUESTS = {
    "empty frame": b"",
    "half a header": struct.pack(">hh", 3, 1),
    "unknown API": header(999, 0),
    "negative API": header(-1, 0),
    "API of KRaft": header(62, 0),
    "unsupported version": header(ApiKey.METADATA, 99, flexible=True),
    "negative version": header(ApiKey.METADATA, -5),
    "client id longer than the frame": struct.pack(">hhih", 3, 1, 1, 30_000) + b"short",
    "client id that is no text": struct.pack(">hhih", 3, 1, 1, 4) + b"\xff\xfe\xfd\xfc" + struct.pack(">i", 0),
    "classic count larger than the frame": header(ApiKey.METADATA, 1) + struct.pack(">i", INT_MAX),
    "compact count larger than the frame": header(ApiKey.METADATA, 9, flexible=True) + uvarint(2**32 - 1),
    "count without end": header(ApiKey.METADATA, 9, flexible=True) + b"\xff" * 100,
    "records longer than the frame": header(ApiKey.PRODUCE, 3)
    + struct.pack(">hhii", -1, 1, 1000, 1)
    + struct.pack(">h", 1)
    + b"t"
    + struct.pack(">iii", 1, 0, INT_MAX),
    "nested counts": header(ApiKey.PRODUCE, 3) + struct.pack(">hhi", -1, 1, 1000) + struct.pack(">i", 50_000) * 1000,
    "20 million tagged fields": header(ApiKey.API_VERSIONS, 3) + uvarint(TAGGED_FIELDS) + bytes(2 * TAGGED_FIELDS),
    "tagged field longer than the frame": header(ApiKey.API_VERSIONS, 3) + b"\x01\x00" + uvarint(2**31),
    "tags that do not ascend": header(ApiKey.API_VERSIONS, 3) + b"\x02\x05\x00\x05\x00",
    "random bytes": random.Random(7).randbytes(65_536),
}


@pytest.fixture(scope="module")
def hostile_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path_factory.mktemp("hostile"), {})) as broker:
        yield broker


def is_closed_after(broker: OdradekBroker, data: bytes) -> bool:
    with RawClient(broker.host, broker.port) as client:
        try:
            client.send_bytes(data)
        except ConnectionClosedError:
            return True
        return client.awaits_close()


def warnings(broker: OdradekBroker) -> list[str]:
    return [line for line in broker.log_text().splitlines() if "] WARN " in line]


def assert_serves(broker: OdradekBroker) -> None:
    with RawClient(broker.host, broker.port) as client:
        assert client.call(MetadataRequest(topics=None), 9).brokers  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NO_FRAMES)
def test_what_is_no_frame_closes_the_connection(hostile_broker: OdradekBroker, name: str) -> None:
    assert is_closed_after(hostile_broker, NO_FRAMES[name])
    assert_serves(hostile_broker)


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_what_is_no_request_closes_the_connection(hostile_broker: OdradekBroker, name: str) -> None:
    assert is_closed_after(hostile_broker, framed(NO_REQUESTS[name]))
    assert_serves(hostile_broker)


def test_each_reason_has_one_line_and_a_flood_does_not_fill_the_log(hostile_broker: OdradekBroker) -> None:
    time.sleep(1.1)  # the lines of the tests before count towards the same limit
    before, started = len(warnings(hostile_broker)), time.monotonic()
    for _ in range(300):
        assert is_closed_after(hostile_broker, NO_FRAMES["size -1"])
        assert is_closed_after(hostile_broker, framed(NO_REQUESTS["unknown API"]))
    lines = warnings(hostile_broker)[before:]
    assert 2 <= len(lines) <= 2 * (2 + time.monotonic() - started), "one line a second of each kind"
    assert any("Invalid receive (size = -1)" in line for line in lines)
    assert any("Unknown API key 999" in line for line in lines)


def test_truncated_frames_are_forgotten_with_their_connection(hostile_broker: OdradekBroker) -> None:
    process = psutil.Process(hostile_broker.pid)
    open_before = process.num_fds()
    for announced, sent in [(1000, 0), (1000, 999), (MAX_REQUEST_BYTES, 100_000)]:
        for _ in range(20):
            with socket.create_connection((hostile_broker.host, hostile_broker.port)) as client:
                client.sendall(struct.pack(">i", announced) + bytes(sent))
    eventually(process.num_fds, accept=lambda count: count <= open_before)
    assert_serves(hostile_broker)


def test_announced_but_unsent_frames_cost_nothing(hostile_broker: OdradekBroker) -> None:
    assert_serves(hostile_broker)
    before = psutil.Process(hostile_broker.pid).memory_info().rss
    clients = [socket.create_connection((hostile_broker.host, hostile_broker.port)) for _ in range(100)]
    for client in clients:
        client.sendall(struct.pack(">i", MAX_REQUEST_BYTES) + b"x" * 100)
    assert_serves(hostile_broker)
    growth = psutil.Process(hostile_broker.pid).memory_info().rss - before
    for client in clients:
        client.close()
    assert growth <= MAX_GROWTH_BYTES


def test_any_body_for_any_api_is_survived(hostile_broker: OdradekBroker) -> None:
    """Bodies of one repeated byte make every length and count zero, huge or negative. Whatever decodes is answered."""
    for spec in API.values():
        if spec.key in OF_THE_CONTROLLER:
            continue
        for version in (spec.min_version, spec.max_version):
            for filler in (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"):
                with RawClient(hostile_broker.host, hostile_broker.port) as client:
                    flexible = spec.request_header_version(version) == 2
                    client.send_frame(header(spec.key, version, flexible=flexible) + filler * 200)
        assert_serves(hostile_broker)


def test_a_second_pass_needs_no_more_memory_than_the_first(hostile_broker: OdradekBroker) -> None:
    def one_pass() -> int:
        for data in NO_FRAMES.values():
            is_closed_after(hostile_broker, data)
        for payload in NO_REQUESTS.values():
            is_closed_after(hostile_broker, framed(payload))
        for seed in range(200):
            is_closed_after(hostile_broker, framed(random.Random(seed).randbytes(10_000)))
        assert_serves(hostile_broker)
        return psutil.Process(hostile_broker.pid).memory_info().rss

    gc.collect()
    warm = one_pass()
    assert one_pass() - warm <= MAX_GROWTH_BYTES


def test_connection_stays_open_after_an_unsupported_version_of_api_versions(hostile_broker: OdradekBroker) -> None:
    with RawClient(hostile_broker.host, hostile_broker.port) as client:
        client.send_frame(header(ApiKey.API_VERSIONS, 99, flexible=True))
        assert client.receive_frame()[4:6] == struct.pack(">h", 35)
        assert client.call(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]
