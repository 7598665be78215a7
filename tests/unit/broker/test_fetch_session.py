"""Fetch sessions: the epochs, what an incremental answer leaves out, and who is evicted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.fetch_session import (
    FINAL_EPOCH,
    MAX_EPOCH,
    MIN_EVICTION_MS,
    FetchContext,
    FetchSessionCache,
    new_context,
)
from odradek.broker.replica_results import ReadResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from odradek.storage.fetch_data import FetchDataInfo
from odradek.storage.offsets import LogOffsetMetadata

TOPIC_ID = b"\x01" * 16


class Broker:
    """A session cache and a clock; every partition answers what `data` says."""

    def __init__(self, max_sessions: int = 10) -> None:
        self.now_ms = 0
        self.names = {TOPIC_ID: "t"}
        ids = iter(range(1, 1_000_000))
        self.cache = FetchSessionCache(max_sessions, lambda low, high: next(ids))

    def open(self, request: FetchRequest, version: int = 12, *, is_follower: bool = False) -> FetchContext:
        return new_context(self.cache, request, version, self.names.get, is_follower=is_follower, now_ms=self.now_ms)

    def fetch(
        self,
        request: FetchRequest,
        data: dict[int, PartitionData] | None = None,
        version: int = 12,
        *,
        is_follower: bool = False,
    ) -> FetchResponse:
        context = self.open(request, version, is_follower=is_follower)
        data = data or {}
        answers = [(fetch, data.get(fetch.partition, told(fetch.partition))) for fetch in context.partitions]
        return context.respond(answers, self.now_ms)


def told(partition: int, *, high_watermark: int = 0, records: bytes = b"", error: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
    )


def request(
    *partitions: int, session: int = 0, epoch: int = 0, offset: int = 0, forget: Sequence[int] = ()
) -> FetchRequest:
    return FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=p, fetch_offset=offset) for p in partitions])
        ]
        if partitions
        else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def named(response: FetchResponse) -> list[int]:
    return [part.partition_index for topic in response.responses for part in topic.partitions]


def test_full_fetch_gets_a_session_and_names_every_partition() -> None:
    response = Broker().fetch(request(0, 1))
    assert response.session_id == 1
    assert named(response) == [0, 1]


def test_incremental_answer_leaves_out_what_is_not_news() -> None:
    broker = Broker()
    session = broker.fetch(request(0, 1)).session_id
    assert named(broker.fetch(request(session=session, epoch=1))) == []
    assert named(broker.fetch(request(session=session, epoch=2), {1: told(1, high_watermark=5)})) == [1]
    assert named(broker.fetch(request(session=session, epoch=3), {1: told(1, high_watermark=5)})) == []
    assert named(
        broker.fetch(request(session=session, epoch=4), {1: told(1, high_watermark=5), 0: told(0, records=b"x")})
    ) == [0]


def test_partition_is_named_again_once_its_error_is_gone() -> None:
    broker = Broker()
    session = broker.fetch(request(0)).session_id
    assert named(broker.fetch(request(session=session, epoch=1), {0: told(0, error=6)})) == [0]
    assert named(broker.fetch(request(session=session, epoch=2))) == [0]
    assert named(broker.fetch(request(session=session, epoch=3))) == []


def test_partitions_that_returned_records_go_to_the_end() -> None:
    broker = Broker()
    session = broker.fetch(request(0, 1, 2)).session_id
    broker.fetch(request(session=session, epoch=1), {0: told(0, records=b"x")})
    context = broker.open(request(session=session, epoch=2))
    assert [fetch.partition for fetch in context.partitions] == [1, 2, 0]


def test_partitions_are_added_changed_and_forgotten() -> None:
    broker = Broker()
    session = broker.fetch(request(0, 1)).session_id
    context = broker.open(request(1, 2, session=session, epoch=1, offset=7, forget=[0]))
    assert [(fetch.partition, fetch.fetch_offset) for fetch in context.partitions] == [(1, 7), (2, 7)]


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(1, ErrorCode.NONE), (2, ErrorCode.INVALID_FETCH_SESSION_EPOCH), (7, ErrorCode.INVALID_FETCH_SESSION_EPOCH)],
)
def test_epoch_has_to_be_the_next_one(epoch: int, error: ErrorCode) -> None:
    broker = Broker()
    session = broker.fetch(request(0)).session_id
    assert broker.fetch(request(session=session, epoch=epoch)).error_code == error


def test_unknown_session_is_an_error_without_partitions() -> None:
    response = Broker().fetch(request(0, session=99, epoch=1))
    assert (response.error_code, response.session_id, named(response)) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])


def test_topic_ids_cannot_come_or_go_within_a_session() -> None:
    broker = Broker()
    session = broker.fetch(request(0)).session_id
    response = broker.fetch(request(session=session, epoch=1), version=13)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_epoch_wraps_to_one() -> None:
    broker = Broker()
    session_id = broker.fetch(request(0)).session_id
    session = broker.cache.get(session_id)
    assert session is not None
    session.epoch = MAX_EPOCH
    assert broker.fetch(request(session=session_id, epoch=MAX_EPOCH)).error_code == ErrorCode.NONE
    assert broker.fetch(request(session=session_id, epoch=1)).error_code == ErrorCode.NONE


def test_full_fetch_closes_the_session_it_names() -> None:
    broker = Broker()
    session = broker.fetch(request(0)).session_id
    assert broker.fetch(request(0, session=session, epoch=FINAL_EPOCH)).session_id == 0
    assert broker.cache.get(session) is None
    assert len(broker.cache) == 0


def test_session_that_lost_its_last_partition_is_closed() -> None:
    broker = Broker()
    session = broker.fetch(request(0)).session_id
    response = broker.fetch(request(session=session, epoch=1, forget=[0]))
    assert (response.session_id, response.error_code, len(broker.cache)) == (0, ErrorCode.NONE, 0)


def test_same_session_over_another_connection_makes_the_slower_answer_an_error() -> None:
    broker = Broker()
    session = broker.fetch(request(0)).session_id
    waiting = broker.open(request(session=session, epoch=1))
    broker.fetch(request(session=session, epoch=2))
    answers = [(fetch, told(0)) for fetch in waiting.partitions]
    assert waiting.respond(answers, 0).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_topic_id_unknown_at_first_is_resolved_later() -> None:
    broker = Broker()
    broker.names = {}
    by_id = FetchRequest(
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0)])], session_epoch=0
    )
    context = broker.open(by_id, 13)
    assert [fetch.topic for fetch in context.partitions] == [None]
    session = context.respond([(context.partitions[0], told(0, error=100))], 0).session_id
    broker.names = {TOPIC_ID: "t"}
    context = broker.open(FetchRequest(session_id=session, session_epoch=1), 13)
    assert [fetch.topic for fetch in context.partitions] == ["t"]


def test_full_cache_gives_no_session_until_one_is_old_enough() -> None:
    broker = Broker(max_sessions=1)
    first = broker.fetch(request(0)).session_id
    assert broker.fetch(request(0, 1)).session_id == 0
    broker.now_ms = MIN_EVICTION_MS + 1
    second = broker.fetch(request(0)).session_id
    assert second not in (0, first)
    assert broker.cache.get(first) is None
    assert broker.cache.evictions == 1


def test_session_in_use_makes_room_only_for_one_with_more_partitions() -> None:
    broker = Broker(max_sessions=1)
    first = broker.fetch(request(0, 1)).session_id
    broker.now_ms = MIN_EVICTION_MS + 1
    assert broker.fetch(request(session=first, epoch=1)).error_code == ErrorCode.NONE
    assert broker.fetch(request(0)).session_id == 0
    assert broker.fetch(request(0, 1, 2)).session_id != 0


def test_follower_takes_a_consumers_place() -> None:
    broker = Broker(max_sessions=1)
    broker.fetch(request(0, 1, 2))
    assert broker.fetch(request(0), is_follower=True).session_id != 0
    assert broker.fetch(request(0, 1, 2)).session_id == 0


def test_partition_named_twice_counts_once_as_last_named() -> None:
    twice = FetchRequest(
        topics=[
            FetchTopic(
                topic="t",
                partitions=[FetchPartition(partition=0, fetch_offset=1), FetchPartition(partition=0, fetch_offset=2)],
            )
        ]
    )
    context = Broker().open(twice)
    assert [(fetch.partition, fetch.fetch_offset) for fetch in context.partitions] == [(0, 2)]


def test_sessions_remember_a_bounded_number_of_partitions() -> None:
    broker = Broker()
    broker.cache = FetchSessionCache(10, lambda low, high: 77, max_partitions=3)
    assert broker.fetch(request(0, 1)).session_id == 77
    assert broker.fetch(request(0, 1)).session_id == 0, "no room: served without a session"
    assert broker.fetch(request(2, session=77, epoch=1)).error_code == ErrorCode.NONE
    refused = broker.fetch(request(3, session=77, epoch=2))
    assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.cache.total_partitions == 0


@given(
    first=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    high_watermark=st.integers(0, 2),
    log_start_offset=st.integers(0, 2),
    size=st.sampled_from([0, 5]),
    error=st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]),
    preferred=st.sampled_from([-1, 3]),
    diverging=st.sampled_from([None, (0, 1)]),
)
def test_what_has_been_told_is_what_the_session_would_leave_out(
    first: tuple[int, int],
    high_watermark: int,
    log_start_offset: int,
    size: int,
    error: ErrorCode,
    preferred: int,
    diverging: tuple[int, int] | None,
) -> None:
    broker = Broker()
    told_first = PartitionData(
        partition_index=0, error_code=0, high_watermark=first[0], log_start_offset=first[1], records=b""
    )
    session_id = broker.fetch(request(0), {0: told_first}).session_id
    context = broker.open(request(session=session_id, epoch=1))
    (fetch,) = context.partitions
    data = PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=b"x" * size,
        preferred_read_replica=preferred,
    )
    if diverging is not None:
        data.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    result = ReadResult(
        fetch=fetch,
        error=error,
        fetched=FetchDataInfo(LogOffsetMetadata(0), memoryview(b"x" * size)),
        diverging_epoch=diverging,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        preferred_read_replica=preferred,
    )
    assert context.has_told(result) is not fetch.note_answer(data)


def test_nothing_has_been_told_without_a_session() -> None:
    context = Broker().open(request(0))
    (fetch,) = context.partitions
    assert not context.has_told(ReadResult(fetch=fetch))
