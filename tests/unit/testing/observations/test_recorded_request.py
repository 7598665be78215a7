from __future__ import annotations

import pickle

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.testing.observations.recorded_request import ConnectionView, RecordedRequest
from tests.support.wire.requests import batch, build


def recorded(body: bytes | None, answer: tuple[bytes | int, ...] | None, *, has_answer: bool = True) -> RecordedRequest:
    return RecordedRequest(
        number=3,
        api="Produce",
        api_key=0,
        version=9,
        correlation_id=1,
        client_id="me",
        connection=ConnectionView(
            connection_id="a:1-b:2-0",
            client_host="b",
            client_port=2,
            listener="PLAINTEXT",
            security_protocol="PLAINTEXT",
            is_own_broker=False,
        ),
        principal="User:ANONYMOUS",
        software_name="",
        software_version="",
        received_ms=0,
        duration_ms=1.5,
        encoded_body=body,
        encoded_answer=answer,
        has_answer=has_answer,
    )


BODY = encode(
    build(
        ApiKey.PRODUCE,
        acks=1,
        topic_data=[{"name": "t", "partition_data": [{"index": 0, "records": batch(b"a", b"b", compression_type=1)}]}],
    ),
    9,
)
ANSWER = encode(ProduceResponse(responses=[], throttle_time_ms=4), 9)


def test_body_answer_and_records_are_decoded_on_demand() -> None:
    request = recorded(BODY, (ANSWER,))
    assert request.body["acks"] == 1
    assert request.answer == {"responses": [], "throttleTimeMs": 4}
    assert (request.topics, request.errors) == (("t",), ())
    assert [(topic, record.value, record.compression) for topic, record in request.records()] == [
        ("t", b"a", "gzip"),
        ("t", b"b", "gzip"),
    ]
    assert request.kept_bytes == len(BODY) + len(ANSWER)
    assert str(request) == "Produce v9 of me (request 3)"


def test_it_crosses_processes() -> None:
    request = recorded(BODY, (ANSWER,))
    assert pickle.loads(pickle.dumps(request)).body == request.body


def test_what_was_too_large() -> None:
    request = recorded(None, None)
    assert (request.topics, request.errors, request.kept_bytes) == ((), (), 0)
    with pytest.raises(ValueError, match="The body of Produce v9 of me"):
        _ = request.body
    with pytest.raises(ValueError, match="The answer to Produce v9 of me"):
        _ = request.answer


def test_without_an_answer() -> None:
    assert recorded(BODY, None, has_answer=False).answer is None
