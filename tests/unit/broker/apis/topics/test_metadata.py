"""Metadata: all topics or some, by name or by id, and topics that the request creates."""

from __future__ import annotations

import pytest

from odradek.broker.apis.authorization import EVERY_OPERATION
from odradek.controller.model.acls import ResourceType
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
UNSAID = -(2**31)

CLUSTER_OPERATIONS = EVERY_OPERATION[ResourceType.CLUSTER]
TOPIC_OPERATIONS = EVERY_OPERATION[ResourceType.TOPIC]


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)
        broker.create_topic("u")


def metadata(
    broker: InProcessBroker, topics: list[object] | None, version: int = 12, **fields: bool
) -> MetadataResponse:
    response = broker.call(build(ApiKey.METADATA, topics=topics, **fields), version)
    assert isinstance(response, MetadataResponse)
    return response


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


def only(response: MetadataResponse) -> MetadataResponseTopic:
    (topic,) = response.topics
    return topic


@pytest.mark.parametrize("version", range(13))
def test_topic_by_name(broker: InProcessBroker, version: int) -> None:
    response = metadata(broker, [{"name": "t"}], version)
    topic = only(response)
    assert (topic.error_code, topic.name, topic.is_internal) == (NONE, "t", False)
    assert topic.topic_id == (broker.topic_id("t") if version >= 10 else ZERO_UUID)
    assert [part.partition_index for part in topic.partitions] == [0, 1]
    for part in topic.partitions:
        assert (part.error_code, part.leader_id, part.replica_nodes, part.isr_nodes) == (NONE, 0, [0], [0])
        assert part.leader_epoch == (0 if version >= 7 else -1)
        assert part.offline_replicas == []
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port) == (0, FakeConnection.local_host, FakeConnection.local_port)
    assert response.controller_id == (0 if version >= 1 else -1)
    if version >= 2:
        assert response.cluster_id == broker.services.cluster_id


@pytest.mark.parametrize("version", range(13))
def test_all_topics_are_null_and_in_version_0_empty(broker: InProcessBroker, version: int) -> None:
    everything = [] if version == 0 else None
    assert {"t", "u"} <= errors(metadata(broker, everything, version)).keys()


@pytest.mark.parametrize("version", range(1, 13))
def test_no_topics_at_all(broker: InProcessBroker, version: int) -> None:
    response = metadata(broker, [], version)
    assert response.topics == []
    assert len(response.brokers) == 1


def test_topic_asked_for_twice_is_answered_once(broker: InProcessBroker) -> None:
    assert errors(metadata(broker, [{"name": "t"}, {"name": "u"}, {"name": "t"}])) == {"t": NONE, "u": NONE}


# By id


def test_topic_by_id(broker: InProcessBroker) -> None:
    topic = only(metadata(broker, [{"name": None, "topic_id": broker.topic_id("t")}]))
    assert (topic.error_code, topic.name, topic.topic_id) == (NONE, "t", broker.topic_id("t"))


def test_unknown_id_has_no_name_and_no_operations(broker: InProcessBroker) -> None:
    asked = [{"name": None, "topic_id": b"?" * 16}, {"name": None, "topic_id": broker.topic_id("t")}]
    response = metadata(broker, asked, include_topic_authorized_operations=True)
    unknown, known = response.topics
    assert (unknown.error_code, unknown.name, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, b"?" * 16)
    assert (unknown.topic_authorized_operations, known.topic_authorized_operations) == (
        UNSAID,
        TOPIC_OPERATIONS,
    )


def test_once_an_id_is_given_names_do_not_count(broker: InProcessBroker) -> None:
    response = metadata(broker, [{"name": "u"}, {"name": None, "topic_id": broker.topic_id("t")}])
    assert errors(response) == {"t": NONE}


def test_a_topic_without_name_and_id_counts_only_where_no_id_is_given(broker: InProcessBroker) -> None:
    nothing = {"name": None, "topic_id": ZERO_UUID}
    assert errors(metadata(broker, [nothing, {"name": None, "topic_id": broker.topic_id("t")}])) == {"t": NONE}
    for asked in ([nothing], [{"name": "t"}, nothing]):
        response = metadata(broker, asked)
        assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("by_id", [True, False])
def test_ids_and_null_names_are_refused_before_version_12(broker: InProcessBroker, version: int, by_id: bool) -> None:
    topic = {"name": "t", "topic_id": b"i" * 16} if by_id else {"name": None}
    assert only(metadata(broker, [topic], version)).error_code == ErrorCode.INVALID_REQUEST


# Unknown topics


def test_topic_is_created_by_being_asked_for(broker: InProcessBroker) -> None:
    topic = only(metadata(broker, [{"name": "born"}], allow_auto_topic_creation=True))
    assert (topic.error_code, topic.partitions, topic.topic_id) == (ErrorCode.LEADER_NOT_AVAILABLE, [], ZERO_UUID)
    assert broker.settle(lambda: broker.services.metadata_cache.contains("born"))
    assert errors(metadata(broker, [{"name": "born"}])) == {"born": NONE}


@pytest.mark.parametrize("version", [0, 3])
def test_oldest_clients_cannot_decline(broker: InProcessBroker, version: int) -> None:
    name = f"old{version}"
    assert only(metadata(broker, [{"name": name}], version)).error_code == ErrorCode.LEADER_NOT_AVAILABLE


@pytest.mark.parametrize("version", [4, 12])
def test_creation_can_be_declined(broker: InProcessBroker, version: int) -> None:
    response = metadata(broker, [{"name": "never"}, {"name": "t"}], version, allow_auto_topic_creation=False)
    assert errors(response) == {"never": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": NONE}
    assert not broker.services.metadata_cache.contains("never")


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ü", "x" * 250])
def test_name_that_cannot_be(broker: InProcessBroker, name: str, allowed: bool) -> None:
    topic = only(metadata(broker, [{"name": name}], allow_auto_topic_creation=allowed))
    assert (topic.name, topic.error_code) == (name, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_internal_topic_is_known_for_one_even_while_it_is_missing(broker: InProcessBroker) -> None:
    topic = only(metadata(broker, [{"name": "__transaction_state"}], allow_auto_topic_creation=False))
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)


# Operations


@pytest.mark.parametrize(("version", "cluster"), [(8, CLUSTER_OPERATIONS), (10, CLUSTER_OPERATIONS)])
def test_operations_are_returned_on_request(broker: InProcessBroker, version: int, cluster: int) -> None:
    asked = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    response = metadata(broker, [{"name": "t"}], version, **asked)
    assert response.cluster_authorized_operations == cluster
    assert only(response).topic_authorized_operations == TOPIC_OPERATIONS
    silent = metadata(broker, [{"name": "t"}], version)
    assert (silent.cluster_authorized_operations, only(silent).topic_authorized_operations) == (UNSAID, UNSAID)
