"""Frames and headers on a socket: answers and their order, and frames that close the connection."""

from __future__ import annotations

import socket
import struct

import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from tests.support.broker import Broker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

UNSUPPORTED_VERSION = 35


def connect(broker: Broker) -> RawClient:
    return RawClient(broker.host, broker.port)


def is_alive(client: RawClient) -> bool:
    answer = client.call(build(ApiKey.API_VERSIONS), 0)
    assert isinstance(answer, ApiVersionsResponse)
    return answer.error_code == 0


def header(api_key: int, version: int, client_id: bytes | None = b"raw") -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 7, length) + (client_id or b"")


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_api_versions_in_an_unknown_version_is_answered_in_version_0(broker: Broker, version: int) -> None:
    """Error 35 in a v0 body that names ApiVersions' own range, and the connection stays open (KIP-511)."""
    with connect(broker) as client:
        client.send_frame(header(ApiKey.API_VERSIONS, version) + b"\0\x02x\x021\0")
        answer = client.receive(ApiKey.API_VERSIONS, 0, correlation_id=7)
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == UNSUPPORTED_VERSION
        assert [(v.api_key, v.min_version, v.max_version) for v in answer.api_keys] == [(18, 0, 4)]
        assert is_alive(client)


def test_the_advertised_versions_are_those_of_3_9(broker: Broker) -> None:
    with connect(broker) as client:
        answer = client.call(build(ApiKey.API_VERSIONS), 0)
    assert isinstance(answer, ApiVersionsResponse)
    advertised = {v.api_key: (v.min_version, v.max_version) for v in answer.api_keys}
    assert advertised == {int(spec.key): (spec.min_version, spec.max_version) for spec in API.values()}
    assert len(advertised) == 62


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        header(9999, 0),
        header(-1, 0),
        header(52, 0),
        header(ApiKey.METADATA, 99),
        header(ApiKey.METADATA, -1),
        header(ApiKey.PRODUCE, 12),
        header(ApiKey.METADATA, 1),
        header(ApiKey.METADATA, 1) + b"\x7f\xff\xff\xff",
        header(ApiKey.METADATA, 0) + struct.pack(">i", -1),
        header(ApiKey.METADATA, 1)[:9],
        struct.pack(">hhih", ApiKey.METADATA, 1, 7, 500),
        header(ApiKey.METADATA, 12) + b"\0\xff\xff\xff\xff\xff",
        header(ApiKey.METADATA, 12) + b"\x01\x05",
        header(ApiKey.LIST_OFFSETS, 1) + struct.pack(">ii", -1, 1) + b"\x00\x10ab",
    ],
    ids=lambda frame: frame.hex() or "empty",
)
def test_a_frame_that_is_no_request_closes_the_connection(broker: Broker, frame: bytes) -> None:
    with connect(broker) as client:
        client.send_frame(frame)
        assert client.awaits_close()
    with connect(broker) as client:
        assert is_alive(client)


@pytest.mark.parametrize("size", [-1, -(2**31), 104_857_601, 2**31 - 1])
def test_a_frame_of_an_impossible_size_closes_the_connection(broker: Broker, size: int) -> None:
    with connect(broker) as client:
        client.send_bytes(struct.pack(">i", size))
        assert client.awaits_close()


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)]
)
def test_another_protocol_closes_the_connection(broker: Broker, junk: bytes) -> None:
    with connect(broker) as client:
        client.send_bytes(junk)
        assert client.awaits_close()


def test_bytes_after_a_request_are_ignored(broker: Broker) -> None:
    with connect(broker) as client:
        client.send_frame(header(ApiKey.API_VERSIONS, 0) + b"more than was asked for")
        assert client.receive(ApiKey.API_VERSIONS, 0, correlation_id=7).error_code == 0


@pytest.mark.parametrize("client_id", [None, b"", b"x" * 30_000, "Žluťoučký".encode()])
def test_client_ids(broker: Broker, client_id: bytes | None) -> None:
    with connect(broker) as client:
        client.send_frame(header(ApiKey.API_VERSIONS, 0, client_id))
        assert client.receive(ApiKey.API_VERSIONS, 0, correlation_id=7).error_code == 0


def test_unknown_tagged_fields_are_skipped(broker: Broker) -> None:
    with connect(broker) as client:
        tags = b"\x02\x05\x03abc\x7f\x00"
        client.send_frame(header(ApiKey.DESCRIBE_CLUSTER, 0) + tags + b"\0" + tags)
        assert client.receive(ApiKey.DESCRIBE_CLUSTER, 0, correlation_id=7).error_code == 0


def test_requests_in_one_packet_are_answered_in_order(broker: Broker) -> None:
    """A hundred requests of different kinds before the first answer is read."""
    with connect(broker) as client:
        sent = []
        for i in range(100):
            match i % 3:
                case 0:
                    sent.append((ApiKey.API_VERSIONS, 0, client.send(build(ApiKey.API_VERSIONS), 0)))
                case 1:
                    sent.append((ApiKey.METADATA, 1, client.send(build(ApiKey.METADATA, topics=[]), 1)))
                case _:
                    fetch = build(ApiKey.FETCH, max_wait_ms=1, min_bytes=1)
                    sent.append((ApiKey.FETCH, 4, client.send(fetch, 4)))
        for api_key, version, correlation_id in sent:
            client.receive(api_key, version, correlation_id)


def test_a_request_in_single_bytes(broker: Broker) -> None:
    payload = header(ApiKey.API_VERSIONS, 0)
    frame = struct.pack(">i", len(payload)) + payload
    with connect(broker) as client:
        for i in range(len(frame)):
            client.send_bytes(frame[i : i + 1])
        assert client.receive(ApiKey.API_VERSIONS, 0, correlation_id=7).error_code == 0


def test_a_client_that_vanishes_in_mid_frame_harms_nobody(broker: Broker) -> None:
    for linger in (struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)):
        connection = socket.create_connection((broker.host, broker.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # the first closes by RST
        connection.sendall(struct.pack(">i", 1000) + bytes(10))
        connection.close()
    with connect(broker) as client:
        assert is_alive(client)


def test_sasl_on_a_plaintext_listener(broker: Broker) -> None:
    """Kafka answers ILLEGAL_SASL_STATE (34) to SASL requests where there is no SASL."""
    with connect(broker) as client:
        assert client.call(build(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN"), 1).error_code == 34
        assert client.call(build(ApiKey.SASL_AUTHENTICATE, auth_bytes=b"x"), 2).error_code == 34


def test_a_closed_connection_is_closed_for_good(broker: Broker) -> None:
    with connect(broker) as client:
        client.send_frame(header(9999, 0))
        assert client.awaits_close()
        with pytest.raises(ConnectionClosedError):
            client.call(build(ApiKey.API_VERSIONS), 0)
