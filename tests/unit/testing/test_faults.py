"""Each action as a client sees it on its connection."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import pytest

from odradek.broker.faults.record import FaultRecord
from odradek.broker.faults.rules.rule_texts import RuleError
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.errors import CorruptRecordError
from odradek.testing import Broker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build, simple_records

PRODUCE, FETCH = 9, 11


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    with connect(shared) as client:
        topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in ("t", "u")]
        client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=10_000), 5)
    return shared


def connect(broker: Broker, client_id: str = "raw", timeout_s: float = 10) -> RawClient:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return RawClient(host, int(port), client_id, timeout_s)


def produce(*parts: tuple[str, int], acks: int = 1, value: bytes = b"v") -> ProduceRequest:
    request = ProduceRequest(acks=acks, timeout_ms=5_000)
    built = build(
        ApiKey.PRODUCE,
        topic_data=[
            {
                "name": topic,
                "partition_data": [{"index": index, "records": bytes(build_batch(simple_records(value)))}],
            }
            for topic, index in parts
        ],
    )
    request.topic_data = built.topic_data  # type: ignore[attr-defined]
    return request


def fetch(*topics: str, session: tuple[int, int] = (0, -1), max_wait_ms: int = 0) -> Request:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000, "current_leader_epoch": -1}
    return build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1 if max_wait_ms else 0,
        max_bytes=10_000_000,
        session_id=session[0],
        session_epoch=session[1],
        topics=[{"topic": topic, "partitions": [partition]} for topic in topics],
    )


def codes(answer: Response) -> dict[tuple[str, int], int]:
    """Of Produce or Fetch, by partition."""
    found = {}
    for topic in answer.responses:  # type: ignore[attr-defined]
        parts = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
        for part in parts:
            name = topic.name if hasattr(topic, "name") else topic.topic
            found[name, part.index if hasattr(part, "index") else part.partition_index] = part.error_code
    return found


def end_offset(broker: Broker, topic: str = "t", partition: int = 0) -> int:
    asked = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}
    request = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": topic, "partitions": [asked]}])
    with connect(broker, "observer") as client:
        answer = client.call(request, 5)
    found: int = answer.topics[0].partitions[0].offset  # type: ignore[attr-defined]
    return found


def test_an_error_for_one_partition_leaves_the_others_alone(broker: Broker) -> None:
    with broker.faults.not_leader("t", partition=0, api="Produce") as fault, connect(broker) as client:
        answer = client.call(produce(("t", 0), ("u", 0)), PRODUCE)
        assert codes(answer) == {("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER, ("u", 0): ErrorCode.NONE}
    fault.assert_called(times=1)
    assert (end_offset(broker, "t"), end_offset(broker, "u")) == (0, 1)


def test_an_error_after_the_append_leaves_the_records(broker: Broker) -> None:
    with broker.faults.isr_shrunk_after_append("t"), connect(broker) as client:
        answer = client.call(produce(("t", 0)), PRODUCE)
    assert codes(answer) == {("t", 0): ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
    assert end_offset(broker) == 1


def test_an_error_where_the_answer_does_not_exist_closes_the_connection(broker: Broker) -> None:
    with broker.faults.not_leader("t"), connect(broker) as client:
        client.send(produce(("t", 0), acks=0), PRODUCE)
        assert client.awaits_close()
    assert end_offset(broker) == 0


def test_a_fetch_of_a_session_gets_an_error_for_a_partition_it_does_not_name(broker: Broker) -> None:
    with connect(broker) as client:
        client.call(produce(("t", 0)), PRODUCE)
        first = client.call(fetch("t", "u", session=(0, 0)), FETCH)
        session_id: int = first.session_id  # type: ignore[attr-defined]
        assert session_id
        with broker.faults.offset_out_of_range("u"):
            started = time.monotonic()
            second = client.call(fetch(session=(session_id, 1), max_wait_ms=9_000), FETCH)
            assert time.monotonic() - started < 5, "an error is answered at once"
        assert codes(second)[("u", 0)] == ErrorCode.OFFSET_OUT_OF_RANGE
        third = client.call(fetch(session=(session_id, 2)), FETCH)
        assert codes(third)[("t", 0)] == ErrorCode.NONE


def test_a_delay_is_of_the_time_of_the_broker_and_answers_stay_in_order(broker: Broker) -> None:
    with broker.faults.delay("150ms", api="Produce", nth=1), connect(broker) as client:
        started = time.monotonic()
        first = client.send(produce(("t", 0)), PRODUCE)
        second = client.send(MetadataRequest(topics=[]), 9)
        client.receive(ApiKey.PRODUCE, PRODUCE, first)
        assert time.monotonic() - started >= 0.14
        client.receive(ApiKey.METADATA, 9, second)


@pytest.mark.parametrize(("name", "appended"), [("drop", 0), ("drop_after_apply", 1)])
def test_a_dropped_connection(broker: Broker, name: str, appended: int) -> None:
    with broker.faults.add(name, api="Produce"), connect(broker) as client:
        client.send(produce(("t", 0)), PRODUCE)
        assert client.awaits_close()
    assert end_offset(broker) == appended


def test_a_reset_is_a_reset(broker: Broker) -> None:
    with broker.faults.reset(api="Metadata"), connect(broker) as client:
        client.send(MetadataRequest(topics=[]), 9)
        with pytest.raises(ConnectionResetError):
            client._socket.recv(1)


@pytest.mark.parametrize("applied", [False, True])
def test_a_black_hole_swallows_the_answer_and_keeps_the_connection(broker: Broker, applied: bool) -> None:
    with broker.faults.black_hole("Produce", applied=applied) as fault, connect(broker, timeout_s=0.3) as client:
        client.send(produce(("t", 0)), PRODUCE)
        fault.wait_called()
        client.send(MetadataRequest(topics=[]), 9)
        with pytest.raises(TimeoutError):
            client._socket.recv(1)
    assert end_offset(broker) == applied


def test_half_an_answer_is_a_whole_frame_that_nobody_can_decode(broker: Broker) -> None:
    with broker.faults.half_answer("Metadata", times=1), connect(broker) as client:
        client.send(MetadataRequest(topics=None), 9)
        with pytest.raises(DecodeError):
            client.receive(ApiKey.METADATA, 9)
        assert client.call(MetadataRequest(topics=None), 9)


def test_half_a_frame_ends_with_the_connection_or_in_silence(broker: Broker) -> None:
    with broker.faults.half_frame("Metadata", bytes=10), connect(broker) as client:
        client.send(MetadataRequest(topics=None), 9)
        (size,) = struct.unpack(">i", client._read(4))
        assert size > 6
        assert len(client._read(6)) == 6
        assert client.awaits_close()
    with broker.faults.half_frame("Metadata", close=False), connect(broker) as client:
        client.send(MetadataRequest(topics=None), 9)
        client._read(8)
        client._socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client._read(10_000)


@pytest.mark.parametrize("value", [b"v", bytes(300_000)])
def test_half_an_answer_with_records_of_a_file(broker: Broker, value: bytes) -> None:
    with connect(broker) as client:
        client.call(produce(("t", 0), value=value), PRODUCE)
        with broker.faults.half_frame("Fetch"):
            client.send(fetch("t"), FETCH)
            (size,) = struct.unpack(">i", client._read(4))
            assert size > len(value)
            client._read((size + 4) // 2 - 4)
            assert client.awaits_close()


def test_slow_bytes(broker: Broker) -> None:
    with broker.faults.slow_bytes(20_000, api="Fetch"), connect(broker) as client:
        client.call(produce(("t", 0), value=bytes(5_000)), PRODUCE)
        started = time.monotonic()
        answer = client.call(fetch("t"), FETCH)
        took = time.monotonic() - started
    assert took > 0.2
    (records,) = [part.records for topic in answer.responses for part in topic.partitions]  # type: ignore[attr-defined]
    (batch,) = batches(records)
    assert [bytes(record.value or b"") for record in batch.records()] == [bytes(5_000)]


def test_a_duplicate_is_applied_twice_and_answered_once(broker: Broker) -> None:
    with broker.faults.duplicate("Produce", times=1), connect(broker) as client:
        answer = client.call(produce(("t", 0)), PRODUCE)
        assert answer.responses[0].partition_responses[0].base_offset == 1  # type: ignore[attr-defined]
        client.call(MetadataRequest(topics=[]), 9)
    assert end_offset(broker) == 2


@pytest.mark.parametrize("value", [b"v", bytes(300_000)])
@pytest.mark.parametrize("version", [3, FETCH])
def test_a_corrupt_crc_is_found_by_whoever_checks_it(broker: Broker, version: int, value: bytes) -> None:
    with connect(broker) as client:
        client.call(produce(("t", 0), value=value), PRODUCE)
        with broker.faults.corrupt_crc("t"):
            answer = client.call(fetch("t"), version)
        (records,) = [part.records for each in answer.responses for part in each.partitions]  # type: ignore[attr-defined]
        (batch,) = batches(records)
        with pytest.raises(CorruptRecordError):
            batch.ensure_valid()
        answer = client.call(fetch("t"), version)
        (records,) = [part.records for each in answer.responses for part in each.partitions]  # type: ignore[attr-defined]
        for batch in batches(records):
            batch.ensure_valid()


def test_stale_metadata_is_the_previous_answer_to_the_same_question(broker: Broker) -> None:
    asked = MetadataRequest(topics=None)
    with broker.faults.stale_metadata() as fault, connect(broker) as client:
        before = client.call(asked, 9)
        fault.assert_not_called()
        new = {"name": "new", "num_partitions": 1, "replication_factor": 1}
        client.call(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 5)
        assert client.call(asked, 9) == before
        fault.assert_called(times=1)
    with connect(broker) as client:
        names = {topic.name for topic in client.call(asked, 9).topics}  # type: ignore[attr-defined]
    assert "new" in names


def test_stale_metadata_is_replayed(broker: Broker) -> None:
    asked = MetadataRequest(topics=None)

    def create(client: RawClient, name: str) -> None:
        new = {"name": name, "num_partitions": 1, "replication_factor": 1}
        client.call(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 5)

    def counts_seen() -> list[int]:
        with connect(broker) as client:
            before = len(client.call(asked, 9).topics)  # type: ignore[attr-defined]
            create(client, f"new-{before}")
            return [before] + [len(client.call(asked, 9).topics) for _ in range(2)]  # type: ignore[attr-defined]

    with broker.faults.stale_metadata(times=1):
        first = counts_seen()
        record = broker.faults.record()
    assert first == [first[0], first[0], first[0] + 1]
    with connect(broker) as client:
        create(client, "between")  # what is remembered of the first run differs from now
    broker.faults.replay(record)
    again = counts_seen()
    assert again == [again[0], again[0], again[0] + 1]
    broker.faults.assert_replayed()
    assert len(broker.faults.record().events) == 1


@pytest.mark.parametrize(
    ("name", "request_", "version"),
    [("leader_not_available", MetadataRequest(topics=None), 9), ("throttle", build(ApiKey.API_VERSIONS), 2)],
)
def test_what_the_broker_has_in_its_caches_stays_as_it_is(
    broker: Broker, name: str, request_: Request, version: int
) -> None:
    keys = {"ms": 1} if name == "throttle" else {}
    with connect(broker) as client:
        before = client.call(request_, version)
        with broker.faults.add(name, **keys) as fault:
            assert client.call(request_, version) != before
        fault.assert_called(times=1)
        assert client.call(request_, version) == before


def test_a_throttled_connection_is_muted_for_the_time(broker: Broker) -> None:
    with broker.faults.throttle("150ms", api="Metadata", times=1), connect(broker) as client:
        started = time.monotonic()
        answer = client.call(MetadataRequest(topics=[]), 9)
        assert answer.throttle_time_ms == 150  # type: ignore[attr-defined]
        client.call(MetadataRequest(topics=[]), 9)
        assert time.monotonic() - started >= 0.14


def test_the_first_rule_that_fires_decides_and_the_next_one_follows(broker: Broker) -> None:
    with (
        broker.faults.not_leader("t", times=1) as first,
        broker.faults.isr_shrunk("t", times=1) as second,
        connect(broker) as client,
    ):
        seen = [codes(client.call(produce(("t", 0)), PRODUCE))["t", 0] for _ in range(3)]
    assert seen == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE]
    assert (first.call_count, second.call_count) == (1, 1)


def test_assertions_say_what_happened(broker: Broker) -> None:
    with broker.faults.drop(api="Heartbeat") as fault:
        fault.assert_not_called()
        with pytest.raises(AssertionError, match="The fault drop changed no request"):
            fault.assert_called()
        with pytest.raises(AssertionError, match=r"changed 0 requests in 0.01 s, not 1"):
            fault.wait_called(timeout=0.01)
    with broker.faults.not_leader("t", nth=2) as fault, connect(broker) as client:
        client.call(produce(("t", 0)), PRODUCE)
        with pytest.raises(AssertionError, match="1 request fulfilled its other conditions"):
            fault.assert_called()
        client.call(produce(("t", 0)), PRODUCE)
        with pytest.raises(AssertionError, match="changed 1 request: Produce 2 of 'raw'"):
            fault.assert_not_called()
        with pytest.raises(AssertionError, match="changed 1 request, not 2"):
            fault.assert_called(times=2)
    with pytest.raises(RuleError, match="topik"):
        broker.faults.not_leader(topik="t")
    with pytest.raises(AttributeError, match="is no fault"):
        broker.faults.no_leader("t")


def test_a_fault_rests_while_it_is_disabled(broker: Broker) -> None:
    with broker.faults.not_leader("t") as fault, connect(broker) as client:
        fault.disable()
        assert codes(client.call(produce(("t", 0)), PRODUCE))["t", 0] == ErrorCode.NONE
        fault.enable()
        assert codes(client.call(produce(("t", 0)), PRODUCE))["t", 0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_replay_does_the_same_without_chance(broker: Broker) -> None:
    def run() -> list[int]:
        with connect(broker) as client:
            return [codes(client.call(produce(("t", 0)), PRODUCE))["t", 0] for _ in range(20)]

    broker.faults.not_leader("t", probability=0.4, seed=3)
    seen = run()
    record = broker.faults.record()
    assert 0 < seen.count(ErrorCode.NOT_LEADER_OR_FOLLOWER) == len(record.events) < 20
    broker.faults.clear()
    broker.faults.replay(record.to_json())
    assert run() == seen
    broker.faults.assert_replayed()
    again = broker.faults.record()
    assert again.sequence() == record.sequence()
    assert FaultRecord.of_json(record.to_json()) == record


def test_a_replay_says_where_the_requests_differ(broker: Broker) -> None:
    broker.faults.not_leader("t")
    with connect(broker) as client:
        client.call(produce(("t", 0)), PRODUCE)
    record = broker.faults.record()
    broker.faults.clear()
    broker.faults.replay(record)
    with pytest.raises(AssertionError, match="1 request of the record have not come; the first is Produce 1 of 'raw'"):
        broker.faults.assert_replayed()
    with connect(broker) as client:
        assert codes(client.call(produce(("u", 0)), PRODUCE))["u", 0] == ErrorCode.NONE
    with pytest.raises(AssertionError, match=r"request 1 of Produce from 'raw' was version 9 with the topics \['t'\]"):
        broker.faults.assert_replayed()


def test_clear_and_reset_take_all_faults_back(broker: Broker) -> None:
    for end in (broker.faults.clear, broker.reset):
        broker.faults.drop()
        assert len(broker.faults.rules()) == 1
        end()
        assert broker.faults.rules() == []
        assert broker.faults.record() == FaultRecord()
        with connect(broker) as client:
            assert client.call(MetadataRequest(topics=[]), 9)


def test_a_stop_does_not_wait_for_delayed_answers() -> None:
    with Broker() as broker, connect(broker) as client:
        fault = broker.faults.delay("1h", api="Metadata")
        early = broker.faults.add("delay", ms="1h", api="ApiVersions", before=True)
        client.send(MetadataRequest(topics=[]), 9)
        fault.wait_called()
        with connect(broker) as other:
            other.send(build(ApiKey.API_VERSIONS), 0)
            early.wait_called()
        started = time.monotonic()
        broker.stop()
        assert time.monotonic() - started < 5
        with pytest.raises(ConnectionClosedError):
            client.receive(ApiKey.METADATA, 9)


def test_a_broker_in_a_process_of_its_own_has_the_same_faults() -> None:
    with Broker(own_process=True) as broker:
        with (
            broker.faults.error("COORDINATOR_NOT_AVAILABLE", api="FindCoordinator") as fault,
            connect(broker) as client,
        ):
            answer = client.call(build(ApiKey.FIND_COORDINATOR, key="g"), 1)
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[attr-defined]
        fault.assert_called(times=1)
        assert [call.api for call in fault.calls] == ["FindCoordinator"]
        assert broker.faults.record().events == tuple(fault.calls)
