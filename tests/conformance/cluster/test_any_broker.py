"""Answers of brokers that are not the controller or coordinator, and their requests to those that are.

The brokers have a listener of their own for the controller's requests.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import confluent_kafka
import pytest

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from odradek.protocol.messages.alter_partition import AlterPartitionRequest
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.admin import Admin
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.clusters.mixed_cluster import Group, transact
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.oracle

IDS = (0, 1, 2)
PRODUCER_IDS_BLOCK = 1000


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster(
        dict.fromkeys(IDS, target),
        {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
            "control.plane.listener.name": "CONTROL",
            "inter.broker.listener.name": "PLAINTEXT",
            "offsets.topic.num.partitions": "3",
        },
        own_settings=lambda broker_id: {
            "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROL://127.0.0.1:{free_port()}"
        },
    )
    cluster.start()
    return cluster


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Admin:
    return cluster.admin()


def ask(cluster: Cluster, broker_id: int, request: Request, version: int) -> Response:
    with RawClient("127.0.0.1", cluster.ports[broker_id]) as client:
        return client.call(request, version)


def other_than_the_controller(cluster: Cluster) -> int:
    return min(cluster.running - {cluster.tree.controller()})


def test_every_broker_describes_the_same_cluster(cluster: Cluster) -> None:
    for broker_id in IDS:
        answer = ask(cluster, broker_id, DescribeClusterRequest(), 1)
        assert isinstance(answer, DescribeClusterResponse)
        assert answer.controller_id == cluster.tree.controller()
        assert {node.broker_id: node.port for node in answer.brokers} == cluster.ports


def test_every_broker_names_the_same_coordinators(cluster: Cluster, admin: Admin) -> None:
    keys = [f"group-{number}" for number in range(8)]
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=keys)

    def answers() -> list[dict[str, tuple[int, int, int]]]:
        found = []
        for broker_id in IDS:
            answer = ask(cluster, broker_id, request, 4)
            assert isinstance(answer, FindCoordinatorResponse)
            found.append({c.key: (c.error_code, c.node_id, c.port) for c in answer.coordinators})
        return found

    first, second, third = eventually(
        answers,
        accept=lambda found: all(error == 0 for each in found for error, _, _ in each.values()),
    )
    assert first == second == third
    assert {(node, port) for _, node, port in first.values()} == set(cluster.ports.items())


REFUSED: tuple[tuple[Request, int, ErrorCode], ...] = (
    (CreateTopicsRequest(topics=[CreatableTopic(name="no", num_partitions=1)]), 7, ErrorCode.NOT_CONTROLLER),
    (DeleteTopicsRequest(topics=[DeleteTopicState(name="no")]), 6, ErrorCode.NOT_CONTROLLER),
    (
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="no", count=9, assignments=None)]),
        3,
        ErrorCode.NOT_CONTROLLER,
    ),
    (
        ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="no", partitions=[0])]),
        2,
        ErrorCode.NOT_CONTROLLER,
    ),
    (
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name="no", partitions=[ReassignablePartition(replicas=[1])])]
        ),
        0,
        ErrorCode.NOT_CONTROLLER,
    ),
    (ListPartitionReassignmentsRequest(topics=None), 0, ErrorCode.NOT_CONTROLLER),
    (AlterPartitionRequest(broker_id=0, broker_epoch=0), 3, ErrorCode.NOT_CONTROLLER),
    (AllocateProducerIdsRequest(broker_id=0, broker_epoch=0), 0, ErrorCode.NOT_CONTROLLER),
    (ControlledShutdownRequest(broker_id=0, broker_epoch=-1), 3, ErrorCode.STALE_CONTROLLER_EPOCH),
)


@pytest.mark.parametrize(("request_", "version", "error"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_only_the_controller_does_is_refused_by_the_others(
    cluster: Cluster, request_: Request, version: int, error: ErrorCode
) -> None:
    answer = ask(cluster, other_than_the_controller(cluster), request_, version)
    assert {code for code in error_codes(answer) if code != ErrorCode.NONE} == {error}, answer


def test_any_broker_creates_a_topic_that_somebody_asks_for(cluster: Cluster) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="asked-for")], allow_auto_topic_creation=True)
    answer = ask(cluster, other_than_the_controller(cluster), request, 12)
    assert isinstance(answer, MetadataResponse)
    assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    cluster.await_complete("asked-for")
    cluster.await_known("asked-for")


def test_each_broker_has_producer_ids_of_its_own(cluster: Cluster) -> None:
    """The controller gives blocks; the others ask it for theirs."""

    def producer_id(broker_id: int) -> int:
        answer = eventually(
            lambda: ask(cluster, broker_id, InitProducerIdRequest(transactional_id=None), 4),
            accept=lambda answer: getattr(answer, "error_code", -1) == ErrorCode.NONE,
        )
        assert isinstance(answer, InitProducerIdResponse)
        return answer.producer_id

    blocks = {broker_id: producer_id(broker_id) // PRODUCER_IDS_BLOCK for broker_id in IDS}
    assert len(set(blocks.values())) == len(IDS)
    assert {broker_id: producer_id(broker_id) // PRODUCER_IDS_BLOCK for broker_id in IDS} == blocks


def test_markers_reach_leaders_on_other_brokers(cluster: Cluster, admin: Admin) -> None:
    """Whoever coordinates a transaction, its partitions are led by all three, and verified and marked over links."""
    admin.create_assigned_topic("marked", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    cluster.await_known("marked")
    for number in range(4):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": cluster.bootstrap, "transactional.id": f"across-{number}"}
        )
        producer.init_transactions(30)
        for ends_well in (True, False):
            producer.begin_transaction()
            for partition in IDS:
                producer.produce("marked", b"%d" % ends_well, partition=partition)
            assert producer.flush(20) == 0
            if ends_well:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "across", "isolation.level": "read_committed"}
    )
    consumer.assign([confluent_kafka.TopicPartition("marked", partition, 0) for partition in IDS])
    values = []
    for _ in range(12):
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        values.append(message.value())
    assert values == [b"1"] * 12
    # Data and a marker for each end. An end is told before its markers are written.
    eventually(
        lambda: [
            consumer.get_watermark_offsets(confluent_kafka.TopicPartition("marked", partition)) for partition in IDS
        ],
        accept=lambda ends: ends == [(0, 4 * 4)] * 3,
    )
    consumer.close()


def test_a_reader_that_hangs_is_replaced_and_loses_nothing(cluster: Cluster, admin: Admin) -> None:
    """Its successor begins at the committed offset. A stopped process stands for the deadlock of librdkafka."""
    topic = admin.create_assigned_topic("read-on", [IDS])
    group = Group(cluster, "readers", topic, session_timeout_s=6)
    first = [value.encode() for value in transact(cluster, topic, ["read-1", "read-2"])]
    assert group.read(2) == first
    committed = group.committed()
    hanging = group.reader
    os.kill(hanging.pid, signal.SIGSTOP)
    more = [value.encode() for value in transact(cluster, topic, ["read-1", "read-2"])]
    assert group.read(2, hangs_after_s=3) == more
    assert group.reader is not hanging
    assert group.committed() > committed
    group.close()


def test_a_broker_that_stops_hands_over_what_it_leads(cluster: Cluster, admin: Admin) -> None:
    """The controller hears of it over the inter-broker listener, and tells the others over the control plane."""
    admin.create_assigned_topic("handed-over", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    cluster.await_known("handed-over")
    for stopped in (other_than_the_controller(cluster), cluster.tree.controller()):
        assert stopped is not None
        cluster.stop(stopped)
        for partition, state in cluster.tree.partitions("handed-over").items():
            assert state.leader not in (stopped, -1), partition
            assert stopped not in state.isr
        assert "Controlled shutdown request returned successfully" in cluster.log_text(stopped)
        cluster.start(stopped)
        cluster.await_complete("handed-over")
