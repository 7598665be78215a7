"""A record with acks=all and two followers, as the leader sees it, and as each of the followers does.

The other brokers are connections without sockets, and the controller is this module: it sends LeaderAndIsr.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from odradek.broker.inter_broker.broker_connection import BrokerConnection, LinkSettings
from odradek.broker.network.frames.answer_receiver import AnswerReceiver
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.controller.model.broker_info import EndPoint
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import encode_response_parts
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build

TOPIC: Final = "replicated"
TOPIC_ID: Final = bytes(range(16))
OTHERS: Final = (101, 102)
"""The ids of the other two brokers."""
SESSION_ID: Final = 7
FETCH_VERSION: Final = 17
LATER_CONTROLLER: Final = 1_000
"""A controller epoch above that of the broker's own controller."""
CORRELATION_ID: Final = slice(4, 8)
"""Of a response, behind the size of its frame."""


def tell(broker: InProcessBroker, leader: int) -> None:
    """The broker and the two others are the replicas of a new topic, all in sync."""
    own = broker.services.broker_id
    replicas = [own, *OTHERS]
    live = [
        {"id": each, "endpoints": [{"port": 9092, "host": "broker.example", "listener": "PLAINTEXT"}]}
        for each in replicas
    ]
    state = {"partition_index": 0, "leader": leader, "replicas": replicas, "isr": replicas}
    topic = {"topic_name": TOPIC, "topic_id": TOPIC_ID, "partition_states": [state]}
    by = {"controller_id": own, "controller_epoch": LATER_CONTROLLER}
    broker.call(build(ApiKey.UPDATE_METADATA, **by, topic_states=[topic], live_brokers=live), 8)
    topic = {**topic, "partition_states": [{**state, "is_new": True}]}
    answer: Any = broker.call(
        build(
            ApiKey.LEADER_AND_ISR,
            **by,
            topic_states=[topic],
            live_leaders=[{"broker_id": leader, "host_name": "broker.example", "port": 9092}],
        ),
        7,
    )
    assert answer.error_code == ErrorCode.NONE, answer


def follower_fetch(broker_id: int, offset: int, session: tuple[int, int], max_wait_ms: int = 30_000) -> Request:
    """What a follower sends that has all records below `offset`."""
    session_id, session_epoch = session
    part = {"partition": 0, "fetch_offset": offset, "current_leader_epoch": 0, "partition_max_bytes": 1 << 20}
    part |= {"last_fetched_epoch": 0 if offset else -1, "log_start_offset": 0}
    return build(
        ApiKey.FETCH,
        replica_state={"replica_id": broker_id, "replica_epoch": -1},
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=10 << 20,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[{"topic_id": TOPIC_ID, "partitions": [part]}],
    )


class Leader:
    """Another broker: the broker's links lead to it. It answers a Fetch with a record when it is told to."""

    def __init__(self, count: int) -> None:
        self.asked: bytes | None = None
        """The request that has no answer yet."""
        self.broker: InProcessBroker
        self._receivers: list[AnswerReceiver] = []
        self._answers = iter([self._answer(offset) for offset in range(count)])

    def __call__(self, end_point: EndPoint, /, *, client_id: str) -> BrokerConnection:
        settings = LinkSettings(
            connect=self._connect,
            timer=self.broker.server.timer,
            max_frame_bytes=1 << 20,
            connection_setup_timeout_ms=1_000,
            connection_setup_timeout_max_ms=1_000,
            buffers=FrameBuffers(),
        )
        return BrokerConnection(end_point, client_id=client_id, settings=settings)

    def answer(self) -> None:
        """The answer to the request comes; the event loop turns once."""
        assert self.asked is not None
        (receiver,) = self._receivers
        frame = bytearray(next(self._answers))
        frame[CORRELATION_ID] = self.asked[8:12]
        self.asked = None

        async def receive() -> None:
            receiver.get_buffer(-1)[: len(frame)] = frame
            receiver.buffer_updated(len(frame))

        self.broker.loop.run_until_complete(receive())

    async def _connect(self, _: EndPoint, make_receiver: Callable[[], AnswerReceiver]) -> AnswerReceiver:
        receiver = make_receiver()
        receiver.connection_made(cast("asyncio.Transport", self))
        self._receivers.append(receiver)
        return receiver

    def write(self, data: bytes) -> None:
        """Implements a transport, as far as an `AnswerReceiver` uses it."""
        assert self.asked is None, "one request at a time"
        self.asked = data

    def abort(self) -> None: ...

    @staticmethod
    def _answer(offset: int) -> bytes:
        """The record at `offset` after all before it are committed, as a frame."""
        records = build_batch([SimpleRecord(1, b"key", b"v" * 100)], base_offset=offset, partition_leader_epoch=0)
        data = PartitionData(partition_index=0, high_watermark=offset, log_start_offset=0, records=bytes(records))
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
        response = FetchResponse(session_id=SESSION_ID, responses=[topic])
        parts = encode_response_parts(ApiKey.FETCH, FETCH_VERSION, 0, response)
        frame = b"".join(cast("Sequence[bytes]", parts))
        return len(frame).to_bytes(4, "big") + frame
