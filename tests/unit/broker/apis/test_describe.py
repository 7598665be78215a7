"""DescribeCluster, DescribeLogDirs, DescribeProducers and ApiVersions."""

from __future__ import annotations

import pytest

from odradek.broker.apis import HANDLERS
from odradek.broker.apis.authorization import EVERY_OPERATION
from odradek.broker.apis.records import describe_producers
from odradek.controller.model.acls import ResourceType
from odradek.protocol.api import API, ApiKey
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from odradek.protocol.messages.describe_producers import PartitionResponse, ProducerState
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker
from tests.support.wire.requests import batch, build

NONE = ErrorCode.NONE
Lag = tuple[int, int, bool]
UNSAID = -(2**31)
BROKERS, CONTROLLERS = 1, 2


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)
        records = batch(b"a", b"b", producer_id=7, producer_epoch=1, base_sequence=0)
        data = {"index": 0, "records": records}
        broker.call(build(ApiKey.PRODUCE, acks=-1, topic_data=[{"name": "t", "partition_data": [data]}]), 11)


# DescribeCluster


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("asked", [True, False])
def test_cluster(broker: InProcessBroker, version: int, asked: bool) -> None:
    request = build(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=asked)
    response = broker.call(request, version)
    assert (response.error_code, response.error_message) == (NONE, None)  # type: ignore[attr-defined]
    assert response.cluster_id == broker.services.cluster_id  # type: ignore[attr-defined]
    assert response.controller_id == 0  # type: ignore[attr-defined]
    (node,) = response.brokers  # type: ignore[attr-defined]
    assert (node.broker_id, node.host, node.port) == (0, FakeConnection.local_host, FakeConnection.local_port)
    assert response.cluster_authorized_operations == (EVERY_OPERATION[ResourceType.CLUSTER] if asked else UNSAID)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(CONTROLLERS, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_brokers_can_be_asked_for(broker: InProcessBroker, endpoint_type: int, error: ErrorCode) -> None:
    response = broker.call(build(ApiKey.DESCRIBE_CLUSTER, endpoint_type=endpoint_type), 1)
    assert response.error_code == error  # type: ignore[attr-defined]
    assert response.error_message  # type: ignore[attr-defined]


# DescribeLogDirs


def log_dir(
    broker: InProcessBroker, topics: list[object] | None, version: int = 4
) -> tuple[DescribeLogDirsResult, dict[tuple[str, int], Lag]]:
    (result,) = broker.call(build(ApiKey.DESCRIBE_LOG_DIRS, topics=topics), version).results  # type: ignore[attr-defined]
    found = {
        (topic.name, part.partition_index): (part.partition_size, part.offset_lag, part.is_future_key)
        for topic in result.topics
        for part in topic.partitions
    }
    return result, found


@pytest.mark.parametrize("version", range(5))
def test_log_dirs_and_their_partitions(broker: InProcessBroker, version: int) -> None:
    result, found = log_dir(broker, None, version)
    assert (result.error_code, result.log_dir) == (NONE, broker.services.config.log_dirs[0])
    size = len(batch(b"a", b"b"))
    assert found == {("t", 0): (size, 0, False), ("t", 1): (0, 0, False)}
    known = result.total_bytes > result.usable_bytes > 0
    assert known == (version >= 4)


def test_only_the_partitions_that_were_asked_for(broker: InProcessBroker) -> None:
    _, found = log_dir(broker, [{"topic": "t", "partitions": [1, 9]}, {"topic": "none", "partitions": [0]}])
    assert found.keys() == {("t", 1)}
    assert log_dir(broker, [])[1] == {}


def test_lag_of_a_log_that_no_partition_uses_is_unknown(broker: InProcessBroker) -> None:
    partitions = broker.services.replica_manager.partitions.by_name
    hosted = partitions.pop(TopicPartition("t", 1))
    try:
        assert log_dir(broker, None)[1]["t", 1] == (0, -1, False)
    finally:
        partitions[TopicPartition("t", 1)] = hosted


# DescribeProducers


def producers(broker: InProcessBroker, topic: str, partition: int) -> PartitionResponse:
    asked = [{"name": topic, "partition_indexes": [partition]}]
    (found,) = broker.call(build(ApiKey.DESCRIBE_PRODUCERS, topics=asked), 0).topics  # type: ignore[attr-defined]
    (part,) = found.partitions
    return part


def test_state_of_a_producer(broker: InProcessBroker) -> None:
    found = producers(broker, "t", 0)
    assert (found.error_code, found.error_message) == (NONE, None)
    (state,) = found.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 1, 1)
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (-1, -1)
    assert producers(broker, "t", 1).active_producers == []


def test_states_are_made_when_they_are_encoded(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log may have 100,000 producers: no step of the work makes them all."""
    made: list[ProducerState] = []

    def noted(**fields: int) -> ProducerState:
        made.append(ProducerState(**fields))
        return made[-1]

    monkeypatch.setattr(describe_producers, "ProducerState", noted)
    found = describe_producers._partition(broker.services, TopicPartition("t", 0))
    assert (len(found.active_producers), made) == (1, [])
    assert [state.producer_id for state in found.active_producers] == [7]
    assert len(made) == 1


def test_follower_describes_the_producers_of_its_log(broker: InProcessBroker) -> None:
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    partition.leader_id = 7
    try:
        assert len(producers(broker, "t", 0).active_producers) == 1
    finally:
        partition.leader_id = 0


def test_messages_come_with_errors_of_the_topic_alone(broker: InProcessBroker) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic, partition, invalid = producers(broker, "none", 0), producers(broker, "t", 9), producers(broker, "a/b", 0)
    assert (topic.error_code, topic.error_message) == (unknown, DEFAULT_MESSAGES[unknown])
    assert (partition.error_code, partition.error_message) == (unknown, None)
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "a/b" in (invalid.error_message or "")


# ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_every_served_api_is_advertised(broker: InProcessBroker, version: int) -> None:
    request = build(ApiKey.API_VERSIONS, client_software_name="me", client_software_version="1.0")
    connection = FakeConnection()
    response = broker.call(request, version, connection=connection)
    advertised = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}  # type: ignore[attr-defined]
    assert advertised == {key: (API[key].min_version, API[key].max_version) for key in HANDLERS}
    software = (connection.client_software_name, connection.client_software_version)
    assert software == (("me", "1.0") if version >= 3 else ("", ""))


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("me", ""), ("me!", "1"), ("-me", "1"), ("me", "1 2")])
def test_software_has_to_look_like_it(broker: InProcessBroker, name: str, version: str) -> None:
    request = build(ApiKey.API_VERSIONS, client_software_name=name, client_software_version=version)
    response = broker.call(request, 4)
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])  # type: ignore[attr-defined]
    assert broker.call(request, 2).error_code == NONE  # type: ignore[attr-defined]
