"""Requests that were received before the end of a connection are applied in order, and answered if the client reads."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from tests.support.broker import Broker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_topics import end_offset, make_topic
from tests.support.wire.requests import batch, build

WAIT_MS = 300
ANSWER_TIMEOUT_S = 15
PRODUCE_VERSION, FETCH_VERSION = 9, 11


def frame(request: Request, version: int) -> bytes:
    payload = encode_request(RequestHeader(request.API_KEY, version, 7, "raw"), request)
    return struct.pack(">i", len(payload)) + payload


def produce(topic: str, value: bytes, *, acks: int = 0) -> bytes:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(value)}]}]
    return frame(build(ApiKey.PRODUCE, acks=acks, timeout_ms=5_000, topic_data=data), PRODUCE_VERSION)


def fetch_that_waits(topic: str) -> bytes:
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [wanted]}]
    request = build(
        ApiKey.FETCH, replica_id=-1, max_wait_ms=WAIT_MS, min_bytes=1 << 30, max_bytes=1 << 30, topics=topics
    )
    return frame(request, FETCH_VERSION)


def send_and_close(broker: Broker, *frames: bytes) -> None:
    with socket.create_connection((broker.host, broker.port)) as client:
        client.sendall(b"".join(frames))


def send_and_listen(broker: Broker, *frames: bytes) -> bytes:
    """Shut down the writing side behind the frames; what the broker answers until it closes."""
    with socket.create_connection((broker.host, broker.port), timeout=ANSWER_TIMEOUT_S) as client:
        client.sendall(b"".join(frames))
        client.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := client.recv(1 << 16):
            received += chunk
        return received


@pytest.fixture
def plain_loop(tmp_path: Path) -> Iterator[OdradekBroker]:
    """A broker on asyncio's own event loop, which reads, pauses and ends in another way than uvloop."""
    broker = OdradekBroker(tmp_path)
    broker.options = ["--event-loop", "asyncio"]
    broker.start()
    yield broker
    broker.close()


def check_what_came_before_the_end(broker: Broker, topic: str) -> None:
    make_topic(broker, topic)
    burst = [produce(topic, b"x" * 10) for _ in range(2_000)]
    send_and_close(broker, *burst)
    assert eventually(lambda: end_offset(broker, topic), accept=lambda end: end == 2_000)
    # Behind a request that waits; more than a held connection reads, so that most of it is in the kernel's buffer.
    answers = send_and_listen(broker, fetch_that_waits(topic), *(produce(topic, b"x" * 10_000) for _ in range(30)))
    assert end_offset(broker, topic) == 2_030
    assert struct.unpack_from(">ii", answers) == (len(answers) - 4, 7)
    # A frame that is received straight into its buffer.
    send_and_close(broker, produce(topic, bytes(900_000)))
    assert eventually(lambda: end_offset(broker, topic), accept=lambda end: end == 2_031)


@pytest.mark.oracle
def test_everything_before_the_end_is_applied(broker: Broker, unique: Callable[[str], str]) -> None:
    check_what_came_before_the_end(broker, unique("ends"))


def test_everything_before_the_end_is_applied_on_the_plain_event_loop(plain_loop: OdradekBroker) -> None:
    check_what_came_before_the_end(plain_loop, "t")


@pytest.mark.oracle
def test_requests_behind_each_other_are_answered_after_the_end(broker: Broker, unique: Callable[[str], str]) -> None:
    topic = unique("answered")
    make_topic(broker, topic)
    answers = send_and_listen(broker, fetch_that_waits(topic), *(produce(topic, b"x", acks=1) for _ in range(100)))
    sizes = []
    while answers:
        (size,) = struct.unpack_from(">i", answers)
        sizes.append(size)
        answers = answers[4 + size :]
    assert len(sizes) == 101
    assert end_offset(broker, topic) == 100


@pytest.mark.oracle
def test_a_request_that_closes_its_connection_comes_after_the_answers_to_earlier_ones(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    topic = unique("refused")
    make_topic(broker, topic)
    frames = [fetch_that_waits(topic), produce(topic, b"x", acks=1), produce(unique("unknown"), b"x")]
    with socket.create_connection((broker.host, broker.port), timeout=ANSWER_TIMEOUT_S) as client:
        client.sendall(b"".join(frames))
        answers = b""
        while chunk := client.recv(1 << 16):
            answers += chunk
    (first,) = struct.unpack_from(">i", answers)
    (second,) = struct.unpack_from(">i", answers, 4 + first)
    assert len(answers) == 8 + first + second
