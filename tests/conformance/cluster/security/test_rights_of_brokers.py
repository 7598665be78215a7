"""A mixed cluster with ACLs, whose brokers have ClusterAction on the cluster and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from odradek.controller.model.acls import AclOperation
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from tests.support.clusters.cluster import Cluster
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.transcripts.rights import ADMINISTRATOR, CLIENT, EVERYTHING, cluster
from tests.support.transcripts.secured import ACL_AUTHORIZER, write_entries
from tests.support.transcripts.transcript import NOT_READY
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

TOPIC = "both"
ODRADEK, APACHE = 0, 1
BROKERS = ADMINISTRATOR
"""The address of the brokers."""

SETTINGS = {
    "authorizer.class.name": ACL_AUTHORIZER,
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


@pytest.fixture
def brokers(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path, zookeeper, {ODRADEK: "odradek", APACHE: "apache"}, SETTINGS)
    write_entries(started.connect, {BROKERS: [cluster(AclOperation.CLUSTER_ACTION)], CLIENT: EVERYTHING})
    try:
        started.start()
        yield started
    finally:
        started.close()


class Clients:
    """A client of each broker, with all rights."""

    def __init__(self, brokers: Cluster, stack: ExitStack) -> None:
        self._connections = {
            broker_id: stack.enter_context(RawClient("127.0.0.1", port, source_host=CLIENT))
            for broker_id, port in brokers.ports.items()
        }

    def call(self, broker_id: int, request: Request, version: int) -> Response:
        return self._connections[broker_id].call(request, version)

    def produced(self, index: int, records: bytes, **fields: object) -> int:
        """The error code of a Produce to the partition whose leader has its number."""
        data = [{"name": TOPIC, "partition_data": [{"index": index, "records": records}]}]
        request = build(ApiKey.PRODUCE, acks=-1, timeout_ms=20_000, topic_data=data, **fields)
        answer = self.call(index, request, 9)
        return answer.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined, no-any-return]

    def last_stable_offset(self, index: int) -> int:
        topics = [{"topic": TOPIC, "partitions": [{"partition": index, "partition_max_bytes": 1}]}]
        answer = self.call(index, build(ApiKey.FETCH, topics=topics, isolation_level=1, max_wait_ms=10), 12)
        return answer.responses[0].partitions[0].last_stable_offset  # type: ignore[attr-defined, no-any-return]

    def commit_a_transaction_in_both(self) -> None:
        """Each leader asks the coordinator whether its partition is in the transaction, and gets a marker of it."""
        find = build(ApiKey.FIND_COORDINATOR, coordinator_keys=["t"], key_type=1)
        coordinator = eventually(
            lambda: self.call(ODRADEK, find, 4).coordinators[0],  # type: ignore[attr-defined]
            accept=lambda answer: answer.error_code == 0,
        ).node_id
        new = build(ApiKey.INIT_PRODUCER_ID, transactional_id="t", transaction_timeout_ms=60_000)
        begun = eventually(
            lambda: self.call(coordinator, new, 4),
            accept=lambda answer: answer.error_code not in NOT_READY,  # type: ignore[attr-defined]
        )
        producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}  # type: ignore[attr-defined]
        added = build(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            v3_and_below_transactional_id="t",
            v3_and_below_topics=[{"name": TOPIC, "partitions": [ODRADEK, APACHE]}],
            **{f"v3_and_below_{name}": value for name, value in producer.items()},
        )
        parts = self.call(coordinator, added, 3).results_by_topic_v3_and_below[0].results_by_partition  # type: ignore[attr-defined]
        assert [part.partition_error_code for part in parts] == [0, 0]
        for index in (ODRADEK, APACHE):
            records = batch(b"t", is_transactional=True, base_sequence=0, **producer)
            assert self.produced(index, records, transactional_id="t") == 0
        ending = build(ApiKey.END_TXN, transactional_id="t", committed=True, **producer)
        assert self.call(coordinator, ending, 3).error_code == 0  # type: ignore[attr-defined]


def test_brokers_of_both_kinds_need_cluster_action_alone(brokers: Cluster) -> None:
    with ExitStack() as stack:
        clients = Clients(brokers, stack)
        replicas = ([ODRADEK, APACHE], [APACHE, ODRADEK])
        assignments = [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)]
        topics = [{"name": TOPIC, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}]
        creating = build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=20_000)
        created = clients.call(brokers.await_controller(), creating, 7)
        assert created.topics[0].error_code == 0, created  # type: ignore[attr-defined]
        for index in (ODRADEK, APACHE):  # needs the other broker as a follower in the ISR
            eventually(lambda index=index: clients.produced(index, batch(b"v")), accept=lambda code: code == 0)  # type: ignore[misc]
        clients.commit_a_transaction_in_both()
        for index in (ODRADEK, APACHE):  # two records and the marker
            eventually(lambda index=index: clients.last_stable_offset(index), accept=lambda offset: offset == 3)  # type: ignore[misc]
        brokers.stop(APACHE)  # a controlled shutdown
        eventually(lambda: brokers.metadata(ODRADEK).brokers, accept=lambda alive: alive == frozenset({ODRADEK}))
        assert ErrorCode(clients.produced(ODRADEK, batch(b"v"))) is ErrorCode.NOT_ENOUGH_REPLICAS
    brokers.check_logs()
    for log in map(brokers.log_text, (ODRADEK, APACHE)):
        assert "CLUSTER_AUTHORIZATION_FAILED" not in log
        assert "ClusterAuthorizationException" not in log
