"""The requests that the cost of metrics is measured with: the same bytes again and again on one connection.

The client sends a request when it has the answer to the one before, so that each request costs the broker the same
turns of its event loop and the same system calls, whatever else the machine does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_request
from tests.benchmarks.parts.bench_storage import batch_of
from tests.support.wire.raw_client import CLIENT_ID, RawClient
from tests.support.wire.requests import build

TOPIC: Final = "load"
PARTITIONS: Final = 100
SMALL, LARGE = (1, 100), (16, 1_000)
"""(records, bytes of each): a record alone, and a batch of 16 KB."""

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": str(64 << 20),
    "log.retention.bytes": str(64 << 20),
    "offsets.topic.num.partitions": "1",
}
"""Of the brokers, beside whether metrics are on."""


class Caller(Protocol):
    """Asks a broker, over a socket or in the same process."""

    def call(self, request: Request, version: int) -> Response: ...


@dataclass(frozen=True, slots=True)
class Load:
    """`requests` of them take the broker about a fortieth of a second."""

    name: str
    requests: int
    frame: Callable[[Caller], bytes]
    """The request as bytes, with its length; made once, with whatever the broker must have before it."""


def run(client: RawClient, frame: bytes, requests: int) -> None:
    for _ in range(requests):
        client.send_bytes(frame)
        client.receive_frame()


def prepare(client: Caller) -> None:
    """Make the topic, and write to each partition what fetches read."""
    topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
    answer: Any = client.call(build(ApiKey.CREATE_TOPICS, timeout_ms=30_000, topics=[topic]), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE, answer
    produced: Any = client.call(_produced(LARGE, range(PARTITIONS)), 11)
    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE, produced


def _produced(size: tuple[int, int], partitions: range) -> Request:
    data = [{"index": index, "records": batch_of(*size)} for index in partitions]
    return build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=[{"name": TOPIC, "partition_data": data}])


def _bytes_of(request: Request, version: int) -> bytes:
    payload = encode_request(RequestHeader(request.API_KEY, version, 1, CLIENT_ID), request)
    return len(payload).to_bytes(4, "big") + payload


def _produce(size: tuple[int, int], partitions: int) -> Callable[[Caller], bytes]:
    return lambda _: _bytes_of(_produced(size, range(partitions)), 11)


def _fetch(partitions: int) -> Callable[[Caller], bytes]:
    """The first batch of the first partition, which may exceed the limit of a byte; the others have none within it."""

    def frame(client: Caller) -> bytes:
        described: Any = client.call(build(ApiKey.METADATA, topics=[{"name": TOPIC}]), 12)
        parts = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1} for index in range(partitions)]
        topics = [{"topic_id": described.topics[0].topic_id, "partitions": parts}]
        limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 25, "session_epoch": -1}
        return _bytes_of(build(ApiKey.FETCH, topics=topics, **limits), 17)

    return frame


def _heartbeat(client: Caller) -> bytes:
    """Of the only member of a group, whose session does not end during the measurement."""
    client.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4)
    _wait_for_offsets_topic(client)
    protocols = [{"name": "range", "metadata": b""}]
    settings = {"group_id": "g", "session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}
    member_id, error, joined = "", ErrorCode.MEMBER_ID_REQUIRED, None
    waits = {ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
    while error in waits:
        joining = build(
            ApiKey.JOIN_GROUP, member_id=member_id, protocol_type="consumer", protocols=protocols, **settings
        )
        joined = client.call(joining, 9)
        error, member_id = joined.error_code, joined.member_id  # type: ignore[attr-defined]
    assert joined is not None
    assert error == ErrorCode.NONE, joined
    named = {"group_id": "g", "generation_id": joined.generation_id, "member_id": member_id}  # type: ignore[attr-defined]
    shares = [{"member_id": member_id, "assignment": b""}]
    client.call(build(ApiKey.SYNC_GROUP, assignments=shares, **named), 5)
    heartbeat = build(ApiKey.HEARTBEAT, **named)
    answer: Any = client.call(heartbeat, 4)
    assert answer.error_code == ErrorCode.NONE, answer
    return _bytes_of(heartbeat, 4)


def _wait_for_offsets_topic(client: Caller) -> None:
    """Until the broker's metadata has it, each heartbeat looks for it again, which would be counted."""
    described: Any = None
    while described is None or described.topics[0].error_code != ErrorCode.NONE:
        described = client.call(build(ApiKey.METADATA, topics=[{"name": "__consumer_offsets"}]), 12)


LOADS: Final = (
    Load("Produce, 1 record", 250, _produce(SMALL, 1)),
    Load("Produce, 16 KB", 200, _produce(LARGE, 1)),
    Load("Fetch, 16 KB", 180, _fetch(1)),
    Load("Heartbeat", 400, _heartbeat),
    Load(f"Produce, 1 record to each of {PARTITIONS} partitions", 10, _produce(SMALL, PARTITIONS)),
    Load(f"Fetch, {PARTITIONS} partitions", 6, _fetch(PARTITIONS)),
)
