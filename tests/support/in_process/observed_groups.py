"""Members of consumer groups of an observed broker, which send raw requests."""

from __future__ import annotations

import struct
from typing import Any

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from tests.support.in_process.in_process_broker import Waiting
from tests.support.in_process.observed_broker import ObservedBroker
from tests.support.wire.requests import build

SUBSCRIPTION = struct.pack(">h", 1) + encode(ConsumerProtocolSubscription(topics=["t"]), 1)
ASSIGNMENT = struct.pack(">h", 1) + encode(
    ConsumerProtocolAssignment(assigned_partitions=[AssignmentTopicPartition(topic="t", partitions=[0])]), 1
)


def have_coordinator(broker: ObservedBroker) -> None:
    broker.call(ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)
    broker.topic("__consumer_offsets").wait_until_created()


def join_fields(member_id: str = "") -> dict[str, Any]:
    return {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }


def sync_fields(member_id: str, generation: int) -> dict[str, Any]:
    return {
        "group_id": "g",
        "generation_id": generation,
        "member_id": member_id,
        "assignments": [{"member_id": member_id, "assignment": ASSIGNMENT}],
    }


def joined(broker: ObservedBroker) -> str:
    """One member in a stable group; its id."""
    have_coordinator(broker)
    waiting = broker.inner.send(build(ApiKey.JOIN_GROUP, **join_fields()), 2, client_id="app")
    broker.inner.advance(1)
    broker.inner.finish_soon(waiting)
    answer: Any = waiting.answer
    assert answer.error_code == 0, answer
    sync = broker.call(ApiKey.SYNC_GROUP, 2, **sync_fields(answer.member_id, answer.generation_id))
    assert sync.error_code == 0, sync
    return str(answer.member_id)


def commit(broker: ObservedBroker, offset: int) -> Waiting:
    return broker.dispatch(
        ApiKey.OFFSET_COMMIT,
        7,
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[
            {
                "name": "t",
                "partitions": [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "here"}],
            }
        ],
    )
