"""Fetch requests: the epochs of sessions, and the errors."""

from __future__ import annotations

import pytest

from odradek.broker.fetch.fetch_context import FINAL_EPOCH, MAX_EPOCH
from odradek.broker.fetch.fetch_session import PARTITIONS_A_STEP
from odradek.broker.partition.partition_news import PartitionNews
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.storage.offsets import LogOffsetMetadata
from odradek.timer.sliced_work import run_through
from tests.support.in_process.fetch_sessions import TOPIC_ID, Broker, named, request, told


def test_full_fetch_gets_a_session_and_names_every_partition() -> None:
    response = Broker().fetch(request(0, 1))
    assert response.session_id == 1
    assert named(response) == [0, 1]


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
    assert run_through(waiting.respond(answers, 0)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_topic_id_unknown_at_first_is_resolved_later() -> None:
    broker = Broker()
    broker.names = {}
    by_id = FetchRequest(
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0)])], session_epoch=0
    )
    context = broker.open(by_id, 13)
    assert [fetch.topic for fetch in context.partitions] == [None]
    session = run_through(context.respond([(context.partitions[0], told(0, error=100))], 0)).session_id
    broker.names = {TOPIC_ID: "t"}
    context = broker.open(FetchRequest(session_id=session, session_epoch=1), 13)
    assert [fetch.topic for fetch in context.partitions] == ["t"]


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


def test_another_reader_or_another_kind_of_request_reads_all_partitions() -> None:
    """The resting partitions were read for another reader, or under another epoch of the follower's broker."""
    broker = Broker()
    session_id = broker.fetch(request(0, 1)).session_id
    session = broker.cache.get(session_id)
    assert session is not None
    for each in session.partitions.values():
        each.rest(PartitionNews(), LogOffsetMetadata(0), None)
    assert broker.open(request(session=session_id, epoch=1)).partitions == []
    assert broker.open(request(1, session=session_id, epoch=2)).has_resting
    context = broker.open(request(session=session_id, epoch=3), is_follower=True)
    assert ([fetch.partition for fetch in context.partitions], context.has_resting) == ([0, 1], False)


MANY = 100


def test_a_request_changes_a_few_partitions_of_its_session_a_step() -> None:
    broker = Broker()
    session_id = broker.fetch(request(0)).session_id
    session = broker.cache.get(session_id)
    assert session is not None
    making = broker.opening(request(*range(1, MANY + 1), session=session_id, epoch=1))
    sizes = [len(session.partitions) for _ in making]
    assert sizes == [*range(PARTITIONS_A_STEP, MANY + 1, PARTITIONS_A_STEP)]


def test_changed_answers_are_selected_a_few_partitions_a_step() -> None:
    broker = Broker()
    session_id = broker.fetch(request(*range(MANY))).session_id
    context = broker.open(request(session=session_id, epoch=1))
    answers = [(fetch, told(fetch.partition, high_watermark=1)) for fetch in context.partitions]
    told_of = [sum(fetch.sent_high_watermark == 1 for fetch, _ in answers) for _ in context.respond(answers, 0)]
    selected = [*range(PARTITIONS_A_STEP - 1, MANY, PARTITIONS_A_STEP)]
    assert told_of == [*selected, *[MANY] * (MANY // PARTITIONS_A_STEP)]


@pytest.mark.parametrize(
    ("meanwhile", "error"),
    [
        ("another connection goes on", ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ("it is closed", ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_a_session_that_is_not_the_same_after_the_steps_is_an_error(meanwhile: str, error: ErrorCode) -> None:
    broker = Broker()
    session_id = broker.fetch(request(0)).session_id
    making = broker.opening(request(*range(1, PARTITIONS_A_STEP + 1), session=session_id, epoch=1))
    next(making)
    if meanwhile == "it is closed":
        broker.cache.remove(session_id)
    else:
        assert broker.fetch(request(2, session=session_id, epoch=2)).error_code == ErrorCode.NONE
    assert run_through(making).error == error
