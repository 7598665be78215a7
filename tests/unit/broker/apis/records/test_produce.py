"""Produce: refusals before the append, and the shapes of the responses."""

from __future__ import annotations

import struct
import weakref

import pytest

from odradek.broker.apis.records.produce import ADMIN_CLIENT_ID, WITHOUT_ERRORS
from odradek.broker.apis.services import SMALL_REQUEST_BYTES
from odradek.broker.fetch.results import LogAppendResult
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Request
from odradek.protocol.codec.source_writer import PACKED_ABOVE
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import LogAppendInfo
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker
from tests.support.wire.requests import batch, build, message_set

NONE = ErrorCode.NONE
ZSTD = 4

HOPELESS = bytes(8) + struct.pack(">i", 3) + bytes(20)
"""A header with a size that no batch has."""
UNKNOWN_MAGIC = bytes(8) + struct.pack(">iib", 30, 0, 3) + bytes(30)
SHORT = bytes(8) + struct.pack(">iib", 20, 0, 2) + bytes(15)
"""A batch that is smaller than its header."""


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)
        broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        broker.create_topic("logtime", configs={"message.timestamp.type": "LogAppendTime"})


def produce(
    broker: InProcessBroker,
    *partitions: tuple[str, int, bytes | None],
    version: int = 11,
    acks: int = -1,
    client_id: str = "me",
    transactional_id: str | None = None,
) -> list[tuple[str, PartitionProduceResponse]]:
    """The answer of each partition, in the order of the answer."""
    response = broker.call(
        request(*partitions, acks=acks, transactional_id=transactional_id), version, client_id=client_id
    )
    assert isinstance(response, ProduceResponse)
    return [(topic.name, part) for topic in response.responses for part in topic.partition_responses]


def request(*partitions: tuple[str, int, bytes | None], acks: int = -1, transactional_id: str | None = None) -> Request:
    return build(
        ApiKey.PRODUCE,
        acks=acks,
        timeout_ms=1_000,
        transactional_id=transactional_id,
        topic_data=[
            {"name": name, "partition_data": [{"index": index, "records": records}]}
            for name, index, records in partitions
        ],
    )


def end_offset(broker: InProcessBroker, topic: str, partition: int = 0) -> int:
    log = broker.services.log_manager.get_log(TopicPartition(topic, partition))
    assert log is not None
    return log.log_end_offset


def only_error(answers: list[tuple[str, PartitionProduceResponse]]) -> ErrorCode:
    ((_, answer),) = answers
    return ErrorCode(answer.error_code)


def test_offsets_follow_each_other(broker: InProcessBroker) -> None:
    before = end_offset(broker, "t")
    for expected in (before, before + 2):
        ((name, answer),) = produce(broker, ("t", 0, batch(b"a", b"b")))
        assert (name, answer.index, answer.error_code, answer.base_offset) == ("t", 0, NONE, expected)
        assert (answer.log_append_time_ms, answer.log_start_offset) == (-1, 0)
        assert (answer.record_errors, answer.error_message) == ([], None)


def test_log_append_time_is_in_the_response(broker: InProcessBroker) -> None:
    ((_, answer),) = produce(broker, ("logtime", 0, batch(b"a")))
    assert answer.log_append_time_ms == broker.clock.time_ms()


@pytest.mark.parametrize("version", range(12))
def test_answer_of_every_version_is_readable(broker: InProcessBroker, version: int) -> None:
    records = batch(b"a") if version >= 3 else message_set(min(version, 1), b"a")
    assert only_error(produce(broker, ("t", 0, records), version=version)) == NONE


def test_unknown_partition_and_unknown_topic(broker: InProcessBroker) -> None:
    answers = produce(broker, ("t", 9, batch(b"a")), ("none", 0, batch(b"a")), ("t", 0, batch(b"a")))
    found = {(name, answer.index): (answer.error_code, answer.base_offset) for name, answer in answers}
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert found == {("t", 9): unknown, ("none", 0): unknown, ("t", 0): (NONE, end_offset(broker, "t") - 1)}


def test_unknown_partition_is_reported_before_invalid_records(broker: InProcessBroker) -> None:
    assert only_error(produce(broker, ("none", 0, b""))) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("records", "version"),
    [
        (None, 11),
        (b"", 11),
        (batch(b"a")[:-1], 11),  # cut: no whole batch
        (batch(b"a") + batch(b"b"), 11),
        (message_set(1, b"a"), 11),
        (message_set(0, b"a"), 3),
    ],
    ids=["null", "empty", "cut", "two batches", "magic 1", "magic 0"],
)
def test_from_version_3_on_exactly_one_new_batch(broker: InProcessBroker, records: bytes | None, version: int) -> None:
    before = end_offset(broker, "t")
    assert only_error(produce(broker, ("t", 0, records), version=version)) == ErrorCode.INVALID_RECORD
    assert end_offset(broker, "t") == before


def test_older_versions_may_hold_several_message_sets(broker: InProcessBroker) -> None:
    before = end_offset(broker, "t")
    ((_, answer),) = produce(broker, ("t", 0, message_set(1, b"a", b"b") + message_set(1, b"c")), version=2)
    assert (answer.error_code, answer.base_offset) == (NONE, before)
    assert end_offset(broker, "t") == before + 3


@pytest.mark.parametrize(
    ("records", "version", "is_sliced"),
    [
        (message_set(1, b"a") * SMALL_REQUEST_BYTES, 2, True),
        (batch(bytes(SMALL_REQUEST_BYTES)), 3, False),
        (batch(bytes(SMALL_REQUEST_BYTES)), 11, False),
    ],
    ids=["messages of an old client", "batch of an old client", "batch"],
)
def test_a_large_request_takes_one_step_if_it_is_for_one_batch(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, records: bytes, version: int, is_sliced: bool
) -> None:
    sliced: list[object] = []
    monkeypatch.setattr(broker.services, "in_slices", lambda ctx, request, work: sliced.append(work))
    broker.send(request(("t", 0, records)), version)
    assert bool(sliced) == is_sliced


def test_no_more_is_looked_at_than_the_second_batch(broker: InProcessBroker) -> None:
    """An old codec is refused before the second batch, and batches behind it are not separated, as in Apache Kafka."""
    zstd = batch(b"a" * 100, compression_type=ZSTD)
    answers = produce(broker, ("t", 0, zstd + batch(b"a")), ("t", 1, batch(b"a") * 2 + HOPELESS), version=6)
    errors = {answer.index: answer.error_code for _, answer in answers}
    assert errors == {0: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 1: ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("first", [HOPELESS, UNKNOWN_MAGIC])
def test_a_first_batch_that_cannot_be_separated_fails_the_whole_request(broker: InProcessBroker, first: bytes) -> None:
    before = end_offset(broker, "t")
    answers = produce(broker, ("t", 0, batch(b"a")), ("t", 1, first))
    assert {answer.error_code for _, answer in answers} == {ErrorCode.CORRUPT_MESSAGE}
    assert end_offset(broker, "t") == before


@pytest.mark.parametrize("version", [2, 3, 11])
@pytest.mark.parametrize("broken", [batch(b"a") + HOPELESS, batch(b"a") + UNKNOWN_MAGIC, SHORT])
def test_what_is_behind_the_first_header_fails_its_partition_alone(
    broker: InProcessBroker, broken: bytes, version: int
) -> None:
    before = [end_offset(broker, "t", partition) for partition in (0, 1)]
    answers = produce(broker, ("t", 0, batch(b"a")), ("t", 1, broken), ("none", 0, broken), version=version)
    assert {(name, answer.index): answer.error_code for name, answer in answers} == {
        ("t", 0): NONE,
        ("t", 1): ErrorCode.CORRUPT_MESSAGE,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [end_offset(broker, "t", partition) for partition in (0, 1)] == [before[0] + 1, before[1]]


def test_a_short_second_batch_is_one_too_many(broker: InProcessBroker) -> None:
    assert only_error(produce(broker, ("t", 0, batch(b"a") + SHORT))) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("transactional_first", [True, False])
def test_behind_a_transactional_batch_no_first_header_fails_the_request(
    broker: InProcessBroker, transactional_first: bool
) -> None:
    records = batch(b"a", is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    partitions = [("t", 0, records), ("t", 1, HOPELESS)]
    answers = produce(broker, *(partitions if transactional_first else partitions[::-1]), transactional_id="mine")
    errors = {answer.index: answer.error_code for _, answer in answers}
    # The coordinator of the transaction, which would have to verify it, is unavailable.
    first = ErrorCode.NOT_ENOUGH_REPLICAS if transactional_first else ErrorCode.CORRUPT_MESSAGE
    assert errors == {0: first, 1: ErrorCode.CORRUPT_MESSAGE}


def test_wrong_crc_is_found_by_the_log(broker: InProcessBroker) -> None:
    records = bytearray(batch(b"a"))
    records[-1] ^= 1
    assert only_error(produce(broker, ("t", 0, bytes(records)))) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("version", "error"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, NONE)])
def test_zstd_needs_version_7(broker: InProcessBroker, version: int, error: ErrorCode) -> None:
    records = batch(b"a" * 100, compression_type=ZSTD)
    assert only_error(produce(broker, ("t", 0, records), version=version)) == error


def test_records_without_a_key_in_a_compacted_topic_are_named_one_by_one(broker: InProcessBroker) -> None:
    ((_, answer),) = produce(broker, ("compacted", 0, batch(b"a", b"b")))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.error_message is not None


@pytest.mark.parametrize("acks", [2, -2, 77])
def test_acks_that_do_not_exist(broker: InProcessBroker, acks: int) -> None:
    ((_, answer),) = produce(broker, ("t", 0, batch(b"a")), acks=acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)


@pytest.mark.parametrize("transactional_id", [None, "mine"])
def test_what_a_batch_says_of_its_transaction_decides(broker: InProcessBroker, transactional_id: str | None) -> None:
    """CVE-2018-17196: the field of the request may be missing."""
    records = batch(b"a", is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    before = end_offset(broker, "t")
    answers = produce(broker, ("t", 0, records), ("t", 1, batch(b"b")), transactional_id=transactional_id)
    errors = {answer.error_code for _, answer in answers}
    if transactional_id is None:
        assert errors == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    else:
        # The plain records need no verification by the coordinator of the transaction, which is unavailable.
        assert [answer.error_code for _, answer in answers] == [ErrorCode.NOT_ENOUGH_REPLICAS, NONE]
    assert end_offset(broker, "t") == before


def test_internal_topics_are_for_the_admin_client(broker: InProcessBroker) -> None:
    broker.create_topic("__consumer_offsets", configs={"cleanup.policy": "compact"})
    records = batch(b"v", key=b"k")
    assert only_error(produce(broker, ("__consumer_offsets", 0, records))) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert only_error(produce(broker, ("__consumer_offsets", 0, records), client_id=ADMIN_CLIENT_ID)) == NONE


def test_partition_named_twice_is_answered_once_with_its_last_records(broker: InProcessBroker) -> None:
    before = end_offset(broker, "t")
    ((_, answer),) = produce(broker, ("t", 0, batch(b"a")), ("t", 0, batch(b"b", b"c")))
    assert (answer.error_code, answer.base_offset) == (NONE, before)
    assert end_offset(broker, "t") == before + 2


def test_partition_named_twice_and_once_refused_is_answered_once(broker: InProcessBroker) -> None:
    ((_, answer),) = produce(broker, ("t", 0, batch(b"a")), ("t", 0, b""))
    assert answer.error_code == ErrorCode.INVALID_RECORD


# acks=0


def test_acks_0_has_no_answer(broker: InProcessBroker) -> None:
    before = end_offset(broker, "t")
    waiting = broker.send(request(("t", 0, batch(b"a")), acks=0), 11)
    assert waiting.is_answered
    assert waiting.answer is None
    assert waiting.connection.close_reason is None
    assert end_offset(broker, "t") == before + 1


@pytest.mark.parametrize(
    "partition",
    [("none", 0, batch(b"a")), ("t", 0, b""), ("compacted", 0, batch(b"a")), ("t", 0, b"\xff" * 40)],
    ids=["unknown", "no records", "refused by the log", "corrupt"],
)
def test_error_with_acks_0_closes_the_connection(
    broker: InProcessBroker, partition: tuple[str, int, bytes | None]
) -> None:
    waiting = broker.send(request(partition, acks=0), 11)
    assert not waiting.is_answered
    assert waiting.connection.close_reason is not None


# Waiting for replicas


def test_next_produce_may_pass_while_this_one_waits_for_replicas(broker: InProcessBroker) -> None:
    broker.create_topic("replicated")
    partition = broker.services.replica_manager.partition(TopicPartition("replicated", 0))
    partition.in_sync.update_assignment_and_isr((0, 1), (0, 1))
    connection = FakeConnection()
    waiting = broker.send(request(("replicated", 0, batch(b"a"))), 11, connection=connection)
    assert not waiting.is_over
    assert connection.begun[-1].may_pipeline
    broker.advance(1_001)
    response = waiting.answer
    assert isinstance(response, ProduceResponse)
    (answer,) = response.responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


class Frame(bytearray):
    """A frame that a weak reference may watch."""


@pytest.mark.parametrize("partitions", [1, PACKED_ABOVE, PACKED_ABOVE + 1])
def test_a_produce_that_waits_for_replicas_keeps_nothing_of_its_frame(broker: InProcessBroker, partitions: int) -> None:
    """With acks=all each client may have 32 MB of such requests, and `queued.max.request.bytes` does not count them."""
    topic = f"waiting{partitions}"
    broker.create_topic(topic)
    partition = broker.services.replica_manager.partition(TopicPartition(topic, 0))
    partition.in_sync.update_assignment_and_isr((0, 1), (0, 1))
    unknown = [(topic, number, batch(b"a")) for number in range(1, partitions)]
    frame = Frame(broker.frame(request((topic, 0, batch(b"a")), *unknown), 11))
    watched, connection = weakref.ref(frame), FakeConnection()

    async def dispatch(view: memoryview) -> None:
        broker.dispatch(connection, view, broker.clock.monotonic_ms())

    broker.run(dispatch(memoryview(frame)))
    del frame
    broker.settle(lambda: bool(connection.begun) and connection.begun[-1].may_pipeline)
    assert broker.settle(lambda: watched() is None)  # a large request is dropped in a later step
    assert not connection.answers
    broker.advance(1_001)
    broker.settle(lambda: bool(connection.answers))
    (response,) = connection.answers.values()
    assert isinstance(response, ProduceResponse)
    errors = [part.error_code for answer in response.responses for part in answer.partition_responses]
    assert sorted(errors) == sorted(
        [ErrorCode.REQUEST_TIMED_OUT] + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (partitions - 1)
    )


# Leaders


@pytest.mark.parametrize(("version", "leader"), [(9, -1), (10, 7)])
def test_new_leader_is_named_from_version_10_on(broker: InProcessBroker, version: int, leader: int) -> None:
    topic = f"moved{version}"
    broker.create_topic(topic)
    partition = broker.services.replica_manager.partition(TopicPartition(topic, 0))
    partition.leader_id, partition.leader_epoch = 7, 3
    response = broker.call(request((topic, 0, batch(b"a"))), version)
    assert isinstance(response, ProduceResponse)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == leader
    assert answer.current_leader.leader_epoch == (3 if leader == 7 else -1)
    assert response.node_endpoints == [], "broker 7 is not alive"


def test_address_of_the_leader_comes_along(broker: InProcessBroker) -> None:
    broker.create_topic("elsewhere")
    manager = broker.services.replica_manager
    hosted = manager.partitions.by_name.pop(TopicPartition("elsewhere", 0))
    try:
        response = broker.call(request(("elsewhere", 0, batch(b"a"))), 11)
    finally:
        manager.partitions.by_name[TopicPartition("elsewhere", 0)] = hosted
    assert isinstance(response, ProduceResponse)
    (answer,) = response.responses[0].partition_responses
    assert (answer.error_code, answer.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    (node,) = response.node_endpoints
    assert (node.node_id, node.host, node.port) == (0, FakeConnection.local_host, FakeConnection.local_port)


@pytest.mark.parametrize("version", range(12))
def test_the_bytes_of_an_answer_without_errors_are_those_of_the_message(version: int) -> None:
    infos = {
        TopicPartition("t", 0): LogAppendInfo(5, 6, 7, 8, 2),
        TopicPartition("other", 3): LogAppendInfo(2**40, 2**40, 7),
        TopicPartition("t", 9): LogAppendInfo(0, 0, 7, -1, 0),
    }
    topics: dict[str, list[tuple[TopicPartition, LogAppendResult]]] = {}
    message: dict[str, list[PartitionProduceResponse]] = {}
    for name, info in infos.items():
        topics.setdefault(name.topic, []).append((name, LogAppendResult(info)))
        part = PartitionProduceResponse(
            index=name.partition,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time,
            log_start_offset=info.log_start_offset,
        )
        message.setdefault(name.topic, []).append(part)
    pieces: list[bytes] = []
    WITHOUT_ERRORS.encoder(version)(topics, pieces)
    responses = [TopicProduceResponse(name=name, partition_responses=parts) for name, parts in message.items()]
    assert b"".join(pieces) == encode(ProduceResponse(responses=responses), version)
