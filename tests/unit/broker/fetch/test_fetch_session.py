"""Fetch sessions: the partitions that an incremental answer omits, and those that are read for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.fetch.fetch_session import FetchSession, PartitionFetch
from odradek.broker.fetch.results import LogReadResult
from odradek.broker.partition.partition_news import PartitionNews
from odradek.broker.partition.replica import LONG_AGO_MS, Replica
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import EpochEndOffset, FetchPartition, FetchTopic, PartitionData
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchDataInfo
from odradek.timer.sliced_work import run_through
from tests.support.in_process.fetch_sessions import Broker, named, request, told


def test_incremental_answer_omits_unchanged_partitions() -> None:
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


@given(
    first=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    high_watermark=st.integers(0, 2),
    log_start_offset=st.integers(0, 2),
    size=st.sampled_from([0, 5]),
    error=st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]),
    preferred=st.sampled_from([-1, 3]),
    diverging=st.sampled_from([None, (0, 1)]),
)
def test_is_told_agrees_with_the_selection_of_the_session(
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
    result = LogReadResult(
        fetch=fetch,
        error=error,
        fetched=FetchDataInfo(LogOffsetMetadata(0), memoryview(b"x" * size)),
        diverging_epoch=diverging,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        size_in_bytes=size,
        preferred_read_replica=preferred,
    )
    assert result.is_sent is not fetch.note_answer(data)


# Resting

AT_0 = LogOffsetMetadata(0)


def session_of(*indexes: int) -> FetchSession:
    session = FetchSession(1, privileged=True, uses_topic_ids=False, now_ms=0)
    for index in indexes:
        session.add(PartitionFetch("t", ZERO_UUID, index))
    return session


def partitions(fetches: list[PartitionFetch]) -> list[int]:
    return [fetch.partition for fetch in fetches]


def test_a_resting_partition_is_not_read_until_it_changes() -> None:
    session, news = session_of(0, 1, 2), PartitionNews()
    session.partitions["t", 1].rest(news, AT_0, None)
    assert (partitions(session.to_read()), session.has_resting) == ([0, 2], True)
    news.announce()
    assert (partitions(session.to_read()), session.has_resting, len(news)) == ([0, 1, 2], False, 0)
    news.announce()


def test_a_named_partition_wakes_up_and_a_forgotten_one_unsubscribes() -> None:
    session, news = session_of(0, 1), PartitionNews()
    for fetch in session.partitions.values():
        fetch.rest(news, AT_0, None)
    named = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=5)])
    run_through(session.update([named], [("t", 1)], None, {}.get))
    assert [(fetch.partition, fetch.fetch_offset) for fetch in session.to_read()] == [(0, 5)]
    assert len(news) == 0


def test_a_follower_that_rests_is_caught_up_with_each_fetch_of_its_session() -> None:
    session, news, replica = session_of(0), PartitionNews(), Replica(1)
    session.partitions["t", 0].rest(news, AT_0, replica)
    assert replica.last_caught_up_ms == LONG_AGO_MS
    session.last_fetch.ms = 70
    assert (replica.last_caught_up_ms, replica.last_fetch_ms) == (70, 70)
    news.announce()
    session.last_fetch.ms = 90
    assert (replica.last_caught_up_ms, replica.last_fetch_ms, replica.is_resting) == (70, 70, False)


def test_a_closed_session_is_not_woken_and_its_fetch_times_stay() -> None:
    session, news, replica = session_of(0, 1), PartitionNews(), Replica(1)
    session.partitions["t", 0].rest(news, AT_0, replica)
    session.last_fetch.ms = 70
    session.close()
    assert (len(news), replica.last_caught_up_ms, replica.is_resting, session.to_read()) == (0, 70, False, [])


def test_a_session_that_is_closed_while_a_fetch_waits_wakes_it() -> None:
    class Waiting:
        def __init__(self) -> None:
            self.woken: list[int] = []

        def woke_up(self, fetch: PartitionFetch) -> None:
            self.woken.append(fetch.partition)

    session, news, waiting = session_of(0, 1), PartitionNews(), Waiting()
    session.partitions["t", 1].rest(news, AT_0, None)
    session.waiting[waiting] = None
    session.close()
    news.announce()
    assert waiting.woken == [1]
    session.partitions["t", 0].rest(news, AT_0, None)
    session.end_wait(waiting)
    assert len(news) == 0
