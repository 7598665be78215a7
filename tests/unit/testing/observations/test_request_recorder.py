from __future__ import annotations

import pytest

from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import ApiKey
from odradek.protocol.records.batch import assign_prefix
from odradek.testing.observations import request_recorder
from odradek.testing.observations.request_recorder import RequestRecorder
from odradek.testing.observations.waits import Change, Waits
from odradek.timer.clock import ManualClock
from tests.support.in_process.in_process_broker import FakeConnection
from tests.support.in_process.observed_broker import ObservedBroker, produce_fields
from tests.support.wire.requests import batch


def metadata(broker: ObservedBroker, topic: str) -> None:
    broker.call(ApiKey.METADATA, 12, topics=[{"name": topic}], client_id=topic, allow_auto_topic_creation=False)


def test_what_is_known_of_a_request(observed: ObservedBroker) -> None:
    observed.inner.advance(5)
    observed.call(ApiKey.METADATA, 12, topics=[{"name": "t"}], client_id="app")
    (request,) = observed.requests()
    assert (request.api, request.api_key, request.version, request.client_id) == ("Metadata", 3, 12, "app")
    connection = request.connection
    assert (connection.client_host, connection.client_port) == ("10.0.0.7", 40_000)
    assert connection.connection_id == "broker.example:9092-10.0.0.7:40000-0"
    assert (connection.listener, connection.security_protocol) == ("PLAINTEXT", "PLAINTEXT")
    assert request.principal == "User:ANONYMOUS"
    assert request.received_ms == observed.inner.clock.time_ms()
    assert request.answer is not None
    assert request.answer["clusterId"] == observed.services.cluster_id


def test_numbers_go_on_after_a_clear(observed: ObservedBroker) -> None:
    metadata(observed, "a")
    (first,) = observed.requests()
    observed.clear_requests()
    metadata(observed, "b")
    (second,) = observed.requests()
    assert second.number == first.number + 1 == observed.last_request_number()


@pytest.mark.parametrize(("limits", "kept"), [({"requests_max": 2}, 2), ({"bytes_max": 200}, 1), ({}, 3)])
def test_the_oldest_are_dropped(observed: ObservedBroker, limits: dict[str, int], kept: int) -> None:
    recorder = RequestRecorder(observed.inner.clock, Waits(), lambda topic_id: None, **limits)
    observed.services.observe_requests(recorder)
    for topic in ("a", "b", "c"):
        metadata(observed, topic)
    assert [request.client_id for request in recorder.after(0)] == ["a", "b", "c"][3 - kept :]
    assert recorder.dropped == 3 - kept
    assert [request.client_id for request in recorder.after(2)] == ["c"]
    recorder.clear()
    assert (list(recorder.after(0)), recorder.dropped) == ([], 0)


def test_a_large_body_is_not_kept(observed: ObservedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_recorder, "MESSAGE_BYTES_MAX", 300)
    observed.produce("t", b"x" * 100)
    observed.produce("t", b"x" * 1_000)
    small, large = observed.requests("Produce")
    assert small.body["acks"] == -1
    with pytest.raises(ValueError, match="too large to be kept"):
        _ = large.body
    assert large.answer is not None


def fetch(observed: ObservedBroker, version: int = 12) -> None:
    named = {"topic": "t"} if version < 13 else {"topic_id": observed.inner.topic_id("t")}
    observed.call(
        ApiKey.FETCH,
        version,
        max_wait_ms=0,
        max_bytes=10**6,
        topics=[{**named, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10**6}]}],
    )


def records_of_fetch(observed: ObservedBroker) -> object:
    answer = observed.requests("Fetch")[-1].answer
    assert answer is not None
    return answer["responses"][0]["partitions"][0]["records"]  # type: ignore[index, call-overload]


def test_few_fetched_records_are_kept_and_of_many_the_size(
    observed: ObservedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(batch(b"x" * 100))
    assign_prefix(data, 0, 0)
    observed.produce("t", b"x" * 100)
    fetch(observed)
    assert records_of_fetch(observed) == data
    monkeypatch.setattr(request_recorder, "FETCHED_BYTES_MAX", len(data) - 1)
    fetch(observed)
    assert records_of_fetch(observed) == {"sizeInBytes": len(data)}


def test_topic_ids_of_a_fetch_have_names_also_after_the_topic_is_deleted(observed: ObservedBroker) -> None:
    fetch(observed, 16)
    observed.inner.delete_topic("t")
    assert observed.requests("Fetch")[0].topics == ("t",)
    assert [request.api for request in observed.requests(topic="t")] == ["Fetch", "DeleteTopics"]


def test_produce_without_acknowledgement_has_no_answer(observed: ObservedBroker) -> None:
    fields = {**produce_fields("t", batch(b"a")), "acks": 0}
    waiting = observed.inner.send(observed.request(ApiKey.PRODUCE, **fields), 9)
    observed.inner.finish_soon(waiting)
    (request,) = observed.requests("Produce")
    assert (request.has_answer, request.answer, request.errors) == (False, None, ())


def test_a_request_that_is_not_over_is_unanswered(observed: ObservedBroker) -> None:
    observed.dispatch_waiting_fetch()
    assert observed.observations.requests.unanswered == ["Fetch of me"]
    assert observed.requests("Fetch") == []
    observed.produce("t", b"a")
    assert observed.observations.requests.unanswered == []
    assert len(observed.requests("Fetch")) == 1


def test_neither_request_nor_response_is_kept(observed: ObservedBroker) -> None:
    waits = Waits()
    recorder = RequestRecorder(ManualClock(), waits, lambda topic_id: None)
    header = observed.request_header(ApiKey.METADATA, 12)
    ctx = RequestContext(header, FakeConnection(), 0, 0)  # type: ignore[arg-type]
    request = observed.request(ApiKey.METADATA, topics=[{"name": "t"}])
    recorder.request_decoded(ctx, request)
    (kept,) = recorder._open.values()
    assert all(
        held is None or isinstance(held, int | bytes | dict) for held in (kept.body, kept.answer, kept.topic_names)
    )
    recorder.request_completed(RequestContext(header, FakeConnection(), 0, 0))  # type: ignore[arg-type]
    assert waits.count(Change.REQUESTS) == 1, "one that began before the recorder was there"
    assert recorder.last_number == 0


def test_an_answer_that_is_lost_with_its_connection(observed: ObservedBroker) -> None:
    fields = {**produce_fields("u", batch(b"a")), "acks": 0}
    observed.inner.send(observed.request(ApiKey.PRODUCE, **fields), 9)
    (lost,) = observed.requests("Produce")
    assert (lost.errors, lost.has_answer, lost.is_answer_sent) == (("UNKNOWN_TOPIC_OR_PARTITION",), True, False)
    assert "UNKNOWN_TOPIC_OR_PARTITION (not sent)" in observed.failure_report()
    observed.produce("t", b"a")
    assert observed.requests("Produce")[-1].is_answer_sent
