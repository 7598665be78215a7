"""Fetch: limits, old readers, epochs, topic ids, waiting, sessions."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from odradek.broker.fetch.down_conversion import DownConverter
from odradek.broker.fetch.log_reads import LogReads
from odradek.broker.fetch.replica_selector import ClientMetadata
from odradek.broker.fetch.results import FetchParams, LogReadResult
from odradek.broker.partition.partition import Partition
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from odradek.protocol.records.batch import batches
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.open_files import OpenFiles
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker
from tests.support.in_process.security.scripted_authorizer import ScriptedAuthorizer
from tests.support.wire.requests import batch, build

NONE = ErrorCode.NONE
VALUE = b"v" * 100
BATCH_SIZE = len(batch(VALUE))
ZSTD = 4


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 3)
        broker.create_topic("zstd", configs={"compression.type": "zstd"})
        broker.create_topic("modern", configs={"message.downconversion.enable": "false"})
        for partition in range(2):
            for _ in range(3):
                append(broker, "t", partition)


def append(broker: InProcessBroker, topic: str, partition: int = 0, records: bytes | None = None) -> None:
    request = build(
        ApiKey.PRODUCE,
        acks=-1,
        timeout_ms=1_000,
        topic_data=[
            {"name": topic, "partition_data": [{"index": partition, "records": records or batch(VALUE)}]},
        ],
    )
    assert broker.call(request, 11).responses[0].partition_responses[0].error_code == NONE  # type: ignore[attr-defined]


def fetch(
    broker: InProcessBroker,
    *partitions: tuple[str | bytes, int, int],
    version: int = 17,
    partition_bytes: int = 1 << 20,
    session_epoch: int = -1,
    **fields: object,
) -> Request:
    """A request for (topic, partition, offset); a topic given as bytes is an id."""
    for_partition = {
        name: fields.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in fields
    }
    topics = []
    for topic, partition, offset in partitions:
        topic_id = topic if isinstance(topic, bytes) else broker.topic_id(topic)
        name = {"topic_id": topic_id} if version >= 13 else {"topic": topic}
        asked = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": partition_bytes,
            **for_partition,
        }
        topics.append({**name, "partitions": [asked]})
    if version < 7:
        session_epoch = -1
    defaults: dict[str, object] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    return build(ApiKey.FETCH, topics=topics, session_epoch=session_epoch, **(defaults | fields))


def answers(broker: InProcessBroker, request: Request, version: int = 17) -> list[PartitionData]:
    response = broker.call(request, version)
    assert isinstance(response, FetchResponse)
    assert response.error_code == NONE
    return [part for topic in response.responses for part in topic.partitions]


def offsets(data: PartitionData) -> list[int]:
    return [found.base_offset for found in batches(memoryview(bytes(data.records or b"")))]


@pytest.mark.parametrize("version", range(4, 18))
def test_everything_committed_is_returned(broker: InProcessBroker, version: int) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, 0), version=version), version)
    assert (data.error_code, data.high_watermark, offsets(data)) == (NONE, 3, [0, 1, 2])
    assert data.aborted_transactions is None, "only readers of committed data get the list"


def test_readers_of_committed_data_get_the_list_of_aborted_transactions(broker: InProcessBroker) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, 0), isolation_level=1))
    assert (data.aborted_transactions, data.last_stable_offset) == ([], 3)


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_old_readers_get_converted_records(broker: InProcessBroker, version: int, magic: int) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, 0), version=version), version)
    found = list(batches(memoryview(bytes(data.records or b""))))
    assert [(message.magic, message.base_offset) for message in found] == [(magic, 0), (magic, 1), (magic, 2)]


def test_a_conversion_is_work_that_may_outlive_its_connection(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Callable[[], None]] = []
    convert = DownConverter.convert
    monkeypatch.setattr(DownConverter, "convert", lambda *work: waiting.append(lambda: convert(*work)))
    connection = FakeConnection()
    broker.send(fetch(broker, ("t", 0, 0), version=1), 1, connection=connection)
    connection.work.connection_closed()
    assert connection.abandoned.of(connection.listener_name) == 1
    waiting.pop()()
    assert waiting, "the next piece, which is converted while the answer is sent"
    assert connection.abandoned.of(connection.listener_name) == 1
    while waiting:
        waiting.pop()()
    assert connection.abandoned.of(connection.listener_name) == 0


def test_old_reader_in_the_middle_gets_no_record_twice(broker: InProcessBroker) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, 2), version=1), 1)
    assert offsets(data) == [2]


@pytest.mark.parametrize("version", [3, 9])
def test_topics_in_zstd_are_refused_to_readers_before_version_10(broker: InProcessBroker, version: int) -> None:
    (data,) = answers(broker, fetch(broker, ("zstd", 0, 0), version=version), version)
    assert (data.error_code, data.high_watermark) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)


@pytest.mark.parametrize("version", [0, 3])
def test_batch_in_zstd_cannot_be_converted(broker: InProcessBroker, version: int) -> None:
    broker.create_topic(f"mixed{version}")
    append(broker, f"mixed{version}", records=batch(VALUE, compression_type=ZSTD))
    (data,) = answers(broker, fetch(broker, (f"mixed{version}", 0, 0), version=version), version)
    assert (data.error_code, bytes(data.records or b"")) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")


@pytest.mark.parametrize(("version", "error"), [(3, ErrorCode.UNSUPPORTED_VERSION), (4, NONE)])
def test_conversion_can_be_forbidden(broker: InProcessBroker, version: int, error: ErrorCode) -> None:
    (data,) = answers(broker, fetch(broker, ("modern", 0, 0), version=version), version)
    assert data.error_code == error


def test_a_topic_that_may_not_be_read_does_not_tell_its_format(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.services, "authorizer", ScriptedAuthorizer())
    found = answers(broker, fetch(broker, ("zstd", 0, 0), ("modern", 0, 0), ("t", 0, 0), version=3), 3)
    assert [data.error_code for data in found] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 3


# Limits


def test_first_partition_with_data_returns_a_whole_batch_and_the_next_nothing_half(broker: InProcessBroker) -> None:
    request = fetch(broker, ("t", 0, 0), ("t", 1, 0), max_bytes=BATCH_SIZE + 10)
    first, second = answers(broker, request)
    assert offsets(first) == [0]
    assert len(first.records or b"") == BATCH_SIZE + 10, "what is left of the limit is filled"
    assert bytes(second.records or b"") == b"", "half a batch would be the first thing there"


def test_empty_partition_does_not_use_up_the_one_whole_batch(broker: InProcessBroker) -> None:
    first, second = answers(broker, fetch(broker, ("t", 2, 0), ("t", 0, 0), max_bytes=1))
    assert (offsets(first), offsets(second)) == ([], [0])


@pytest.mark.parametrize("version", [0, 2])
def test_oldest_readers_get_nothing_over_the_limit(broker: InProcessBroker, version: int) -> None:
    request = fetch(broker, ("t", 0, 0), version=version, partition_bytes=10)
    (data,) = answers(broker, request, version)
    assert offsets(data) == []


def test_limit_below_zero_is_refused(broker: InProcessBroker) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, 0), partition_bytes=-1))
    assert data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# Refusals


@pytest.mark.parametrize("version", [4, 12])
def test_unknown_topic_by_name(broker: InProcessBroker, version: int) -> None:
    request = fetch(broker, ("none", 0, 0), ("t", 99, 0), ("t", 0, 3), version=version)
    found = [(data.error_code, data.high_watermark) for data in answers(broker, request, version)]
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert found == [(NONE, 3), unknown, unknown], "what could be read comes first"


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_refused_partitions_are_in_the_element_of_their_topic_if_they_follow_it(
    broker: InProcessBroker, session_epoch: int
) -> None:
    asked = [("t", 0, 3), ("none", 1, 0), ("t", 7, 0), ("none", 0, 0), ("none", 2, 0), ("t", 8, 0), ("t", 1, 3)]
    for order, expected in (
        (asked, [("t", [0, 1]), ("none", [1]), ("t", [7]), ("none", [0, 2]), ("t", [8])]),
        (asked[2:], [("t", [1, 7]), ("none", [0, 2]), ("t", [8])]),
        ([asked[2], asked[5]], [("t", [7, 8])]),
    ):
        response = broker.call(fetch(broker, *order, version=12, session_epoch=session_epoch), 12)
        assert isinstance(response, FetchResponse)
        found = [(topic.topic, [data.partition_index for data in topic.partitions]) for topic in response.responses]
        assert found == expected
        codes = {data.partition_index: data.error_code for topic in response.responses[:1] for data in topic.partitions}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == {index: NONE if index < 2 else unknown for index in expected[0][1]}


def test_unknown_topic_id(broker: InProcessBroker) -> None:
    request = fetch(broker, (b"?" * 16, 0, 0))
    response = broker.call(request, 17)
    assert isinstance(response, FetchResponse)
    (topic,) = response.responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_offset_out_of_range(broker: InProcessBroker, offset: int) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, offset)))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("moved_to", "asked", "error", "leader"),
    [
        (5, 4, ErrorCode.FENCED_LEADER_EPOCH, (0, 5)),
        (5, 6, ErrorCode.UNKNOWN_LEADER_EPOCH, (-1, -1)),
        (5, 5, NONE, (-1, -1)),
        (5, -1, NONE, (-1, -1)),
        (5, -2, NONE, (-1, -1)),
    ],
)
def test_leader_epochs(
    broker: InProcessBroker, moved_to: int, asked: int, error: ErrorCode, leader: tuple[int, int]
) -> None:
    partition = broker.services.replica_manager.partition(TopicPartition("t", 2))
    partition.leader_epoch = moved_to
    response = broker.call(fetch(broker, ("t", 2, 0), current_leader_epoch=asked), 17)
    assert isinstance(response, FetchResponse)
    (data,) = response.responses[0].partitions
    assert data.error_code == error
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == leader
    assert [node.node_id for node in response.node_endpoints] == ([0] if leader[0] == 0 else [])


def test_diverging_reader_gets_the_diverging_epoch(broker: InProcessBroker) -> None:
    broker.create_topic("forked")
    append(broker, "forked")
    log = broker.services.replica_manager.partition(TopicPartition("forked", 0)).log
    assert log is not None
    log.assign_epoch_start_offset(2, 1)
    (data,) = answers(broker, fetch(broker, ("forked", 0, 1), last_fetched_epoch=1))
    assert (data.error_code, bytes(data.records or b"")) == (NONE, b"")
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)


def test_reader_of_an_epoch_that_never_was_is_out_of_range(broker: InProcessBroker) -> None:
    (data,) = answers(broker, fetch(broker, ("t", 0, 3), last_fetched_epoch=7))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_storage_error_has_another_name_for_old_readers(broker: InProcessBroker) -> None:
    broker.create_topic("broken")
    broker.services.replica_manager.handle_log_dir_failure([TopicPartition("broken", 0)])
    codes = [answers(broker, fetch(broker, ("broken", 0, 0), version=v), v)[0].error_code for v in (5, 6)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]


def test_unknown_isolation_level_is_refused_as_a_whole(broker: InProcessBroker) -> None:
    response = broker.call(fetch(broker, ("t", 0, 0), isolation_level=9), 17)
    assert isinstance(response, FetchResponse)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# Waiting


def test_waits_for_data_and_is_answered_by_it(broker: InProcessBroker) -> None:
    broker.create_topic("waited")
    waiting = broker.send(fetch(broker, ("waited", 0, 0), max_wait_ms=500), 17)
    assert not waiting.is_over
    append(broker, "waited")
    assert isinstance(waiting.answer, FetchResponse)
    assert offsets(waiting.answer.responses[0].partitions[0]) == [0]


def test_waits_no_longer_than_asked(broker: InProcessBroker) -> None:
    waiting = broker.send(fetch(broker, ("t", 0, 3), max_wait_ms=500), 17)
    broker.advance(499)
    assert not waiting.is_over
    broker.advance(2)
    assert waiting.is_answered


def test_waiting_old_reader_gets_an_error_for_a_file_that_cannot_be_opened(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("open")
    broker.create_topic("evicted")
    append(broker, "evicted")
    files = {}
    for topic in ("open", "evicted"):
        log = broker.services.log_manager.get_log(TopicPartition(topic, 0))
        assert log is not None
        files[topic] = log.segments.active.records
    asked = fetch(broker, ("open", 0, 0), ("evicted", 0, 0), version=3, max_wait_ms=500, min_bytes=BATCH_SIZE + 1)
    waiting = broker.send(asked, 3)
    read_again = LogReads.read_again

    def read_and_evict(reads: LogReads, *args: object) -> list[LogReadResult]:
        results = read_again(reads, *args)  # type: ignore[arg-type]
        assert files["evicted"].evict()
        return results

    def open_none(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(LogReads, "read_again", read_and_evict)
    monkeypatch.setattr(OpenFiles, "opening_for_client", open_none)
    append(broker, "open")
    assert isinstance(waiting.answer, FetchResponse)
    first, second = (topic.partitions[0] for topic in waiting.answer.responses)
    assert (first.error_code, offsets(first)) == (NONE, [0])
    assert (second.error_code, second.high_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert files["open"].evict(), "nothing keeps it open"


def test_waiting_fetch_ends_when_its_topic_is_deleted(broker: InProcessBroker) -> None:
    broker.create_topic("doomed")
    waiting = broker.send(fetch(broker, ("doomed", 0, 0), max_wait_ms=500), 17)
    delete = build(ApiKey.DELETE_TOPICS, topics=[{"name": "doomed"}], timeout_ms=1_000)
    assert broker.call(delete, 6).responses[0].error_code == NONE  # type: ignore[attr-defined]
    broker.finish(waiting)
    assert isinstance(waiting.answer, FetchResponse)
    assert waiting.answer.responses[0].partitions[0].error_code in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )


@pytest.mark.parametrize("error_first", [True, False])
def test_error_in_one_partition_ends_the_wait_of_all(broker: InProcessBroker, error_first: bool) -> None:
    partitions: Sequence[tuple[str, int, int]] = (("t", 0, 3), ("t", 0 + 1, 99))
    if error_first:
        partitions = partitions[::-1]
    waiting = broker.send(fetch(broker, *partitions, max_wait_ms=500), 17)
    assert waiting.is_answered


# Sessions


def test_session_response_contains_only_changes(broker: InProcessBroker) -> None:
    broker.create_topic("watched", 2)
    first = broker.call(fetch(broker, ("watched", 0, 0), ("watched", 1, 0), session_epoch=0), 17)
    assert isinstance(first, FetchResponse)
    assert first.session_id != 0
    assert sum(len(topic.partitions) for topic in first.responses) == 2
    append(broker, "watched", 1)
    second = broker.call(fetch(broker, session_epoch=1, session_id=first.session_id), 17)
    assert isinstance(second, FetchResponse)
    (topic,) = second.responses
    assert (topic.topic_id, [data.partition_index for data in topic.partitions]) == (broker.topic_id("watched"), [1])


@pytest.mark.parametrize(
    ("session_id", "epoch", "error"),
    [
        (12345, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, -5, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_session_errors_are_top_level_errors(
    broker: InProcessBroker, session_id: int, epoch: int, error: ErrorCode
) -> None:
    response = broker.call(fetch(broker, ("t", 0, 0), session_epoch=epoch, session_id=session_id), 17)
    assert isinstance(response, FetchResponse)
    assert (response.error_code, response.session_id, response.responses) == (error, 0, [])


def test_topic_that_was_created_again_has_another_id(broker: InProcessBroker) -> None:
    broker.create_topic("again")
    old = broker.topic_id("again")
    broker.delete_topic("again")
    broker.create_topic("again")
    assert old not in (ZERO_UUID, broker.topic_id("again"))
    (data,) = answers(broker, fetch(broker, (old, 0, 0)))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


# Followers


@contextmanager
def with_follower(broker: InProcessBroker, topic: str, partition: int = 0) -> Iterator[Partition]:
    """Broker 1 is an in-sync replica while the context lasts."""
    hosted = broker.services.replica_manager.partition(TopicPartition(topic, partition))
    hosted.in_sync.update_assignment_and_isr((0, 1), (0, 1))
    try:
        yield hosted
    finally:
        hosted.in_sync.update_assignment_and_isr((0,), (0,))


def as_replica(broker_id: int, request: Request, version: int, *, epoch: int = -1) -> Request:
    assert isinstance(request, FetchRequest)
    if version >= 15:
        request.replica_state.replica_id, request.replica_state.replica_epoch = broker_id, epoch
    else:
        request.replica_id = broker_id
    return request


@pytest.mark.parametrize("version", [14, 15, 17])
def test_follower_reads_uncommitted_records_and_commits_them(broker: InProcessBroker, version: int) -> None:
    with with_follower(broker, "t", 2) as partition:

        def ask(broker_id: int, offset: int, epoch: int = -1) -> PartitionData:
            asked = fetch(broker, ("t", 2, offset), current_leader_epoch=partition.leader_epoch)
            return answers(broker, as_replica(broker_id, asked, version, epoch=epoch), version)[0]

        log = partition.log
        assert log is not None
        before = log.log_end_offset
        data = [{"name": "t", "partition_data": [{"index": 2, "records": batch(VALUE)}]}]
        broker.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=1_000, topic_data=data), 11)
        answer = ask(1, before)
        assert (answer.error_code, offsets(answer), answer.high_watermark) == (NONE, [before], before)
        assert ask(9, before + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert log.high_watermark == before
        assert ask(1, before + 1).error_code == NONE
        assert log.high_watermark == before + 1
        if version >= 15:
            assert [ask(1, before + 1, epoch).error_code for epoch in (7, 6, 7)] == [
                NONE,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                NONE,
            ]


def test_old_follower_gets_converted_records_even_if_the_topic_forbids_conversion(broker: InProcessBroker) -> None:
    append(broker, "modern")
    with with_follower(broker, "modern"):
        (data,) = answers(broker, as_replica(1, fetch(broker, ("modern", 0, 0), version=3), 3), 3)
    assert [found.magic for found in batches(memoryview(bytes(data.records or b"")))][:1] == [1]


def test_bytes_sent_to_followers_of_throttled_partitions_are_counted(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("slow", configs={"leader.replication.throttled.replicas": "*"})
    append(broker, "slow")
    sent: list[int] = []
    monkeypatch.setattr(broker.services.replica_manager.reads.throttle, "record", sent.append)
    with with_follower(broker, "slow"), with_follower(broker, "t"):
        answers(broker, as_replica(1, fetch(broker, ("slow", 0, 0), ("t", 0, 0)), 17))
        answers(broker, fetch(broker, ("slow", 0, 0)))
    assert sent == [BATCH_SIZE]


def test_consumer_gets_the_preferred_replica(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def prefer(reads: LogReads, selector: object, partition: Partition, params: FetchParams, offset: int) -> int | None:
        asked.append((params.client, offset))
        return None if params.client is None else 7

    monkeypatch.setattr(LogReads, "_preferred_read_replica", prefer)
    monkeypatch.setattr(broker.services.replica_manager.reads, "selector", object())
    (data,) = answers(broker, fetch(broker, ("t", 0, 1), rack_id="r", max_wait_ms=500))
    assert (data.preferred_read_replica, data.records, data.high_watermark > 0) == (7, b"", True)
    (data,) = answers(broker, fetch(broker, ("t", 0, 1), version=10), 10)
    assert (data.preferred_read_replica, bool(data.records)) == (-1, True)
    assert asked == [(ClientMetadata("r", "PLAINTEXT"), 1), (None, 1)]
