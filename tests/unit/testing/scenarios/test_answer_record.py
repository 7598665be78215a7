from __future__ import annotations

from dataclasses import replace

from odradek.broker.faults.record import FaultRecord
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.testing.observations.recorded_request import RecordedRequest
from odradek.testing.scenarios.answer_record import record_of
from tests.unit.testing.observations.test_recorded_request import ANSWER, BODY, recorded

REFUSED = encode(
    ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="t",
                partition_responses=[
                    PartitionProduceResponse(index=0, error_code=ErrorCode.KAFKA_STORAGE_ERROR, base_offset=-1)
                ],
            )
        ],
        throttle_time_ms=0,
    ),
    9,
)


def test_errors_and_long_waits_are_events_with_the_number_of_the_request() -> None:
    good, refused = recorded(BODY, (ANSWER,)), recorded(BODY, (REFUSED,))
    slow = replace(good, duration_ms=300.4)
    came = [replace(each, received_ms=now) for now, each in enumerate([good, refused, slow, refused])]
    record = record_of(list(reversed(came)), "disk", slow_ms=300)
    assert record.sequence() == [
        ("me", "Produce", 2, "error"),
        ("me", "Produce", 3, "delay"),
        ("me", "Produce", 4, "error"),
    ]
    assert [event.fault for event in record.events[:2]] == [
        {"action": "error", "code": "KAFKA_STORAGE_ERROR"},
        {"action": "delay", "ms": 300},
    ]
    assert {(event.rule, event.topics, event.connection) for event in record.events} == {("disk", ("t",), 1)}
    assert FaultRecord.of_json(record.to_json()) == record


def test_without_a_limit_no_wait_is_an_event() -> None:
    assert record_of([replace(recorded(BODY, (ANSWER,)), duration_ms=5_000)], "disk").events == ()


def test_requests_that_wait_for_other_clients_are_not_slow() -> None:
    waiting = replace(recorded(None, (ANSWER,)), api="Fetch", duration_ms=5_000)
    assert record_of([waiting], "disk", slow_ms=300).events == ()


def asked(topics: list[MetadataRequestTopic] | None, version: int = 9) -> RecordedRequest:
    body = encode(MetadataRequest(topics=topics), version)
    metadata = {"api": "Metadata", "api_key": ApiKey.METADATA, "version": version}
    return replace(recorded(body, None), duration_ms=500, **metadata)


def test_metadata_for_all_topics_is_told_from_metadata_for_none() -> None:
    came = [asked([]), asked(None), asked([MetadataRequestTopic(name="t")]), asked([], version=0), asked([])]
    record = record_of(came, "disk", slow_ms=300)
    assert [(event.call, event.topics, event.all_topics) for event in record.events] == [
        (1, (), False),
        (1, (), True),
        (1, ("t",), False),
        (2, (), True),
        (2, (), False),
    ]
