from __future__ import annotations

from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.testing.observations.plain_values import error_name, errors_in, plain, topics_in
from tests.support.wire.requests import build

ID = bytes(range(16))


def test_names_are_kafkas_and_values_are_pythons() -> None:
    request = build(
        ProduceRequest.API_KEY,
        transactional_id=None,
        acks=-1,
        timeout_ms=5,
        topic_data=[{"name": "t", "partition_data": [{"index": 3, "records": memoryview(b"abc")}]}],
    )
    value = plain(request, 9)
    assert value == {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 5,
        "topicData": [{"name": "t", "partitionData": [{"index": 3, "records": b"abc"}]}],
    }
    assert "transactionalId" not in plain(request, 2)
    assert plain(request, 9, has_records=False)["topicData"] == [
        {"name": "t", "partitionData": [{"index": 3, "records": {"sizeInBytes": 3}}]}
    ]


def test_topics_by_name_and_by_id() -> None:
    by_name = plain(build(FetchRequest.API_KEY, topics=[{"topic": "t", "partitions": []}]), 12)
    assert list(topics_in(by_name, {})) == ["t"]
    by_id = plain(build(FetchRequest.API_KEY, topics=[{"topic_id": ID, "partitions": []}]), 13)
    assert list(topics_in(by_id, {uuid_to_text(ID): "t"})) == ["t"]
    assert list(topics_in(by_id, {})) == [uuid_to_text(ID)]
    asked = plain(build(MetadataRequest.API_KEY, topics=[{"name": "t"}, {"name": "u"}]), 12)
    assert list(topics_in(asked, {})) == ["t", "u"]


def test_errors_of_an_answer() -> None:
    answer = ProduceResponse(responses=[])
    assert list(errors_in(plain(answer, 9))) == []
    assert list(errors_in(plain(FetchResponse(error_code=70), 13))) == ["FETCH_SESSION_ID_NOT_FOUND"]
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(9_999) == "9999"
