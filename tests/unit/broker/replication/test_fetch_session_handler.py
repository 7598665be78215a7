from __future__ import annotations

from collections.abc import Container, Mapping

import pytest

from odradek.broker.fetch.fetch_context import MAX_EPOCH
from odradek.broker.replication.fetch_session_handler import FetchSessionHandler, PartitionRequest, SessionRequest
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.topic_partition import TopicPartition

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)
IDS = {"a": b"a" * 16, "c": b"c" * 16}
SESSION = 123


def asked(partition: TopicPartition, offset: int = 0, *, topic_id: bytes | None = None) -> PartitionRequest:
    return PartitionRequest(IDS[partition.topic] if topic_id is None else topic_id, offset, 0, 5, 5)


def wanted(*partitions: TopicPartition, offset: int = 0) -> dict[TopicPartition, PartitionRequest]:
    return {partition: asked(partition, offset) for partition in partitions}


def response(
    *partitions: TopicPartition,
    session_id: int = SESSION,
    error: ErrorCode = ErrorCode.NONE,
    throttle_time_ms: int = 0,
    by_name: bool = False,
) -> FetchResponse:
    return FetchResponse(
        error_code=error,
        session_id=session_id,
        throttle_time_ms=throttle_time_ms,
        responses=[
            FetchableTopicResponse(
                topic=partition.topic if by_name else "",
                topic_id=ZERO_UUID if by_name else IDS.get(partition.topic, b"?" * 16),
                partitions=[PartitionData(partition_index=partition.partition)],
            )
            for partition in partitions
        ],
    )


def build(
    handler: FetchSessionHandler, wanted: Mapping[TopicPartition, PartitionRequest], *, only: Container[str] = "ac"
) -> SessionRequest:
    """The next request for these partitions; only those of the topics `only` count as changed."""
    if handler.is_full:
        return handler.build_full(wanted)
    changes = {each: wanted.get(each) for each in {**wanted, **handler.partitions} if each.topic in only}
    return handler.build_incremental(changes)


def in_session(*partitions: TopicPartition) -> FetchSessionHandler:
    handler = FetchSessionHandler(1)
    build(handler, wanted(*partitions))
    assert handler.handle_response(response(*partitions), 17) is not None
    return handler


def where(request: SessionRequest) -> tuple[int, int]:
    return request.session_id, request.session_epoch


def test_the_first_request_names_everything_and_asks_for_a_session() -> None:
    handler = FetchSessionHandler(1)
    request = build(handler, wanted(A, C))
    assert where(request) == (0, 0)
    assert list(request.partitions) == [A, C]
    assert request.can_use_topic_ids
    found = handler.handle_response(response(A, C), 17)
    assert found is not None
    assert list(found) == [A, C]
    assert where(build(handler, wanted(A, C))) == (SESSION, 1)


def test_a_session_names_new_changed_and_forgotten_partitions() -> None:
    handler = in_session(A, B)
    request = build(handler, {A: asked(A, 7), C: asked(C)})
    assert request.partitions == {C: asked(C), A: asked(A, 7)}
    assert request.forgotten == [(B, IDS["a"])]
    assert set(handler.partitions) == {A, C}
    assert handler.handle_response(response(), 17) == {}
    request = build(handler, {A: asked(A, 7), C: asked(C)})
    assert (where(request), request.partitions, request.forgotten) == ((SESSION, 2), {}, [])


def test_a_recreated_topic_is_added_under_its_new_id_and_forgotten_under_the_old() -> None:
    handler = in_session(A)
    anew = asked(A, topic_id=b"n" * 16)
    request = build(handler, {A: anew})
    assert (request.partitions, request.replaced, request.forgotten) == ({A: anew}, [(A, IDS["a"])], [])
    assert request.can_use_topic_ids


def test_a_topic_that_gets_its_id_is_changed_not_replaced() -> None:
    handler = FetchSessionHandler(1)
    assert not build(handler, {A: asked(A, topic_id=ZERO_UUID)}).can_use_topic_ids
    assert handler.handle_response(response(A, by_name=True), 12) is not None
    request = build(handler, {A: asked(A)})
    assert (request.partitions, request.replaced, request.can_use_topic_ids) == ({A: asked(A)}, [], True)


def test_one_topic_without_an_id_makes_names_necessary() -> None:
    handler = FetchSessionHandler(1)
    request = build(handler, {A: asked(A), C: asked(C, topic_id=ZERO_UUID)})
    assert not request.can_use_topic_ids
    found = handler.handle_response(response(A, C, by_name=True), 12)
    assert found is not None
    assert set(found) == {A, C}


def test_a_forgotten_topic_without_an_id_does_so_too() -> None:
    handler = FetchSessionHandler(1)
    build(handler, {A: asked(A), C: asked(C, topic_id=ZERO_UUID)})
    handler.handle_response(response(A, C, by_name=True), 12)
    assert not build(handler, {A: asked(A)}).can_use_topic_ids


def test_an_answer_without_a_session_makes_the_next_request_full() -> None:
    handler = FetchSessionHandler(1)
    build(handler, wanted(A))
    assert handler.handle_response(response(A, session_id=0), 17) is not None
    assert where(build(handler, wanted(A))) == (0, 0)
    handler = in_session(A)
    build(handler, wanted(A))
    assert handler.handle_response(response(session_id=0), 17) == {}
    assert where(build(handler, wanted(A))) == (0, 0)


@pytest.mark.parametrize(
    ("error", "following"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, (0, 0)),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, (SESSION, 0)),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, (SESSION, 0)),
        (ErrorCode.UNKNOWN_SERVER_ERROR, (SESSION, 0)),
    ],
)
def test_an_error_begins_a_new_session(error: ErrorCode, following: tuple[int, int]) -> None:
    handler = in_session(A)
    build(handler, wanted(A))
    assert handler.handle_response(response(error=error), 17) is None
    request = build(handler, wanted(A))
    assert where(request) == following
    assert list(request.partitions) == [A], "everything is named again"


def test_without_an_answer_the_session_is_closed_with_the_next_request() -> None:
    handler = in_session(A)
    handler.handle_error()
    assert where(build(handler, wanted(A))) == (SESSION, 0)


def test_the_epoch_wraps_to_one() -> None:
    handler = in_session(A)
    handler._metadata = SESSION, MAX_EPOCH
    handler.handle_response(response(), 17)
    assert where(build(handler, wanted(A))) == (SESSION, 1)


@pytest.mark.parametrize("partitions", [(A,), (A, B, C), (A, TopicPartition("other", 0))])
def test_a_full_answer_about_other_partitions_is_of_no_use(partitions: tuple[TopicPartition, ...]) -> None:
    handler = FetchSessionHandler(1)
    build(handler, wanted(A, B))
    assert handler.handle_response(response(*partitions), 17) is None
    assert where(build(handler, wanted(A, B))) == (0, 0)


@pytest.mark.parametrize("added", [C, TopicPartition("a", 2)])
def test_an_incremental_answer_may_leave_out_and_not_add(added: TopicPartition) -> None:
    handler = in_session(A, B)
    build(handler, wanted(A, B))
    assert handler.handle_response(response(B), 17) is not None
    build(handler, wanted(A, B))
    assert handler.handle_response(response(added), 17) is None
    assert where(build(handler, wanted(A, B))) == (SESSION, 0)


def test_a_throttled_full_fetch_is_answered_with_nothing() -> None:
    handler = FetchSessionHandler(1)
    build(handler, wanted(A))
    assert handler.handle_response(response(session_id=0, throttle_time_ms=100), 17) is None
    assert where(build(handler, wanted(A))) == (0, 0)


def test_within_a_session_only_possible_changes_are_compared() -> None:
    handler = in_session(A, B, C)
    request = build(handler, {A: asked(A, 7)}, only="c")
    assert (request.partitions, request.forgotten) == ({}, [(C, IDS["c"])])
    assert set(handler.partitions) == {A, B}
    assert handler.handle_response(response(C), 17) is None, "its topic is no longer in the session"


def test_changed_and_forgotten_partitions_keep_their_order() -> None:
    handler = in_session(C, B, A)
    request = handler.build_incremental({A: asked(A, 1), B: asked(B, 1)})
    assert list(request.partitions) == [B, A]
    assert handler.handle_response(response(), 17) == {}
    assert handler.build_incremental({A: None, C: None}).forgotten == [(C, IDS["c"]), (A, IDS["a"])]


def test_a_topic_id_is_known_while_the_session_has_one_of_its_partitions() -> None:
    handler = in_session(A, B)
    handler.build_incremental({A: None})
    assert handler.handle_response(response(B), 17) == {B: PartitionData(partition_index=1)}
    handler.build_incremental({B: asked(B, topic_id=b"n" * 16)})
    assert handler.handle_response(response(B), 17) is None
