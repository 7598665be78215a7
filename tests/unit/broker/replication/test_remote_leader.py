from __future__ import annotations

from typing import TypeVar

import pytest

from odradek.broker.replication.fetch_session_handler import PartitionRequest, SessionRequest
from odradek.broker.replication.fetcher_settings import RemoteLeaderSettings
from odradek.broker.replication.remote_leader import RemoteLeaderEndPoint
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.offsets import SpecialTimestamp
from tests.support.async_test import async_test

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
ID = b"a" * 16
SETTINGS = RemoteLeaderSettings(
    broker_id=3,
    broker_epoch=lambda: 44,
    wait_max_ms=1,
    min_bytes=2,
    max_bytes=3,
    response_max_bytes=4,
    socket_timeout_ms=5,
)

ResponseT = TypeVar("ResponseT", bound=Response)


class Link:
    """Gives the prepared answers in their order."""

    def __init__(self, *answers: Response | OSError) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[Request, int | None, int]] = []
        self.is_closed = False

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        self.sent.append((request, version, timeout_ms))
        answer = self._answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        assert isinstance(answer, response_type)
        return answer

    def close(self) -> None:
        self.is_closed = True


def asked(topic_id: bytes = ID, offset: int = 10) -> PartitionRequest:
    return PartitionRequest(topic_id, offset, 1, 7, 6)


def answer(**fields: object) -> FetchResponse:
    topic = FetchableTopicResponse(topic="a", topic_id=ID, partitions=[PartitionData(partition_index=0)])
    return FetchResponse(responses=[topic], **fields)


def build(leader: RemoteLeaderEndPoint, wanted: dict[TopicPartition, PartitionRequest]) -> SessionRequest:
    session = leader.session
    if session.is_full:
        return session.build_full(wanted)
    return session.build_incremental({each: wanted.get(each) for each in {**wanted, **session.partitions}})


async def fetch_once(link: Link, *requests: dict[TopicPartition, PartitionRequest]) -> RemoteLeaderEndPoint:
    leader = RemoteLeaderEndPoint(1, link, SETTINGS)
    for wanted in requests:
        await leader.fetch(build(leader, wanted))
    return leader


@async_test
async def test_a_fetch_carries_the_settings_and_the_replica_id() -> None:
    link = Link(answer())
    await fetch_once(link, {A: asked()})
    ((request, version, timeout_ms),) = link.sent
    assert isinstance(request, FetchRequest)
    assert (version, timeout_ms) == (17, 5)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (1, 2, 4, 0)
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch, request.replica_id) == (3, 44, -1)
    (topic,) = request.topics
    (part,) = topic.partitions
    assert (topic.topic_id, part.partition, part.fetch_offset, part.log_start_offset) == (ID, 0, 10, 1)
    assert (part.current_leader_epoch, part.last_fetched_epoch, part.partition_max_bytes) == (7, 6, 3)


@async_test
async def test_without_a_topic_id_topics_are_named_by_version_12() -> None:
    link = Link(answer())
    await fetch_once(link, {A: asked(ZERO_UUID)})
    ((request, version, _),) = link.sent
    assert isinstance(request, FetchRequest)
    assert (version, request.replica_id, request.replica_state.replica_id) == (12, 3, -1)


@pytest.mark.parametrize(
    ("metadata_version", "fetch_version", "list_offsets_version"),
    [
        (MetadataVersion.IBP_2_7_IV0, 12, 5),
        (MetadataVersion.IBP_3_1_IV0, 13, 7),
        (MetadataVersion.IBP_3_5_IV1, 15, 8),
        (MetadataVersion.IBP_3_9_IV0, 17, 9),
    ],
)
@async_test
async def test_requests_are_of_the_inter_broker_protocol(
    metadata_version: MetadataVersion, fetch_version: int, list_offsets_version: int
) -> None:
    part = ListOffsetsPartitionResponse(partition_index=0, offset=7)
    link = Link(answer(), ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[part])]))
    leader = RemoteLeaderEndPoint(1, link, SETTINGS._replace(metadata_version=metadata_version))
    await leader.fetch(build(leader, {A: asked()}))
    await leader.offset(A, 7, SpecialTimestamp.EARLIEST)
    (fetch, version, _), (_, second, _) = link.sent
    assert (version, second) == (fetch_version, list_offsets_version)
    assert isinstance(fetch, FetchRequest)
    encode(fetch, version)
    assert (fetch.replica_id, fetch.replica_state.replica_id) == ((3, -1) if fetch_version < 15 else (-1, 3))


@async_test
async def test_forgotten_and_replaced_partitions_are_in_the_request() -> None:
    both = FetchResponse(
        session_id=9,
        responses=[
            FetchableTopicResponse(topic_id=ID, partitions=[PartitionData(partition_index=index)]) for index in (0, 1)
        ],
    )
    link = Link(both, FetchResponse(session_id=9))
    await fetch_once(link, {A: asked(), B: asked()}, {A: asked(b"n" * 16)})
    request = link.sent[1][0]
    assert isinstance(request, FetchRequest)
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(ID, [1, 0])]
    assert [topic.topic_id for topic in request.topics] == [b"n" * 16]


@async_test
async def test_no_answer_closes_the_session() -> None:
    link = Link(answer(session_id=9), OSError("reset"), answer(session_id=10))
    leader = await fetch_once(link, {A: asked()})
    with pytest.raises(OSError, match="reset"):
        await leader.fetch(build(leader, {A: asked()}))
    await leader.fetch(build(leader, {A: asked()}))
    request = link.sent[2][0]
    assert isinstance(request, FetchRequest)
    assert (request.session_id, request.session_epoch) == (9, 0)


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_that_has_to_begin_again_returns_nothing(code: ErrorCode) -> None:
    @async_test
    async def ask() -> None:
        leader = RemoteLeaderEndPoint(1, Link(FetchResponse(error_code=code)), SETTINGS)
        assert await leader.fetch(build(leader, {A: asked()})) == {}

    ask()


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_any_other_error_is_one(code: ErrorCode) -> None:
    @async_test
    async def ask() -> None:
        leader = RemoteLeaderEndPoint(1, Link(FetchResponse(error_code=code)), SETTINGS)
        with pytest.raises(KafkaError) as raised:
            await leader.fetch(build(leader, {A: asked()}))
        assert raised.value.code == code

    ask()


@async_test
async def test_an_error_that_is_not_known_here_is_one_too() -> None:
    leader = RemoteLeaderEndPoint(1, Link(FetchResponse(error_code=999)), SETTINGS)
    with pytest.raises(KafkaError) as raised:
        await leader.fetch(build(leader, {A: asked()}))
    assert raised.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def offsets(index: int = 0, error: ErrorCode = ErrorCode.NONE, offset: int = 42) -> ListOffsetsResponse:
    part = ListOffsetsPartitionResponse(partition_index=index, error_code=error, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[part])])


@async_test
async def test_an_offset_request_has_the_replica_id_and_the_epoch() -> None:
    link = Link(offsets())
    assert await RemoteLeaderEndPoint(1, link, SETTINGS).offset(A, 7, SpecialTimestamp.EARLIEST) == 42
    ((request, version, timeout_ms),) = link.sent
    assert isinstance(request, ListOffsetsRequest)
    assert (version, timeout_ms, request.replica_id, request.isolation_level) == (9, 5, 3, 0)
    (part,) = request.topics[0].partitions
    assert (part.partition_index, part.current_leader_epoch, part.timestamp) == (0, 7, -2)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (offsets(error=ErrorCode.FENCED_LEADER_EPOCH), ErrorCode.FENCED_LEADER_EPOCH),
        (offsets(index=1), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_missing_offset(response: ListOffsetsResponse, code: ErrorCode) -> None:
    @async_test
    async def ask() -> None:
        with pytest.raises(KafkaError) as raised:
            await RemoteLeaderEndPoint(1, Link(response), SETTINGS).offset(A, 7, SpecialTimestamp.LATEST)
        assert raised.value.code == code

    ask()


def test_closing_hangs_up() -> None:
    link = Link()
    RemoteLeaderEndPoint(1, link, SETTINGS).close()
    assert link.is_closed
