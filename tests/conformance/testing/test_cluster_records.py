"""A scenario of a cluster, and the same again from its record: a client sends the same requests to the same brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.testing import Cluster, scenarios
from odradek.testing.scenarios.clusters import OFFSETS_TOPIC, Meanwhile
from tests.support.admin import Admin
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import batch, build

TOPIC = "t"
BROKERS = {0, 1, 2}
ATTEMPTS = 20

SCENARIOS: dict[str, Callable[[Cluster], Meanwhile]] = {
    "rolling_restart": scenarios.rolling_restart,
    "leader_moves": lambda cluster: scenarios.leader_moves(cluster, TOPIC, times=2),
    "controller_loss": scenarios.controller_loss,
    "coordinator_loss": scenarios.coordinator_loss,
    "network_partition": lambda cluster: scenarios.network_partition(cluster, [1], [0, 2]),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A new controller would give the lost broker its leaderships back, five seconds after its election.
    with Cluster(3, default_replication_factor=3, auto_leader_rebalance_enable=False) as started:
        admin = Admin(started.bootstrap_servers)
        admin.create_topic(TOPIC, 1, replicas=3)
        with RawClient(*address(started, 0)) as client:
            client.call(build(ApiKey.FIND_COORDINATOR, key="g"), 1)  # creates the topic of the coordinator
        started.leader(OFFSETS_TOPIC)
        yield started


def address(cluster: Cluster, broker_id: int) -> tuple[str, int]:
    host, _, port = cluster.brokers[broker_id].bootstrap_servers.rpartition(":")
    return host, int(port)


class OneByOne:
    """Produces as a client does: to the leader that it knows, and after an error it asks a broker for the leader."""

    def __init__(self, cluster: Cluster) -> None:
        self._addresses = {broker_id: address(cluster, broker_id) for broker_id in sorted(BROKERS)}
        self._connections: dict[int, RawClient] = {}
        self._leader: int | None = None
        self.requests: list[tuple[str, int, object]] = []
        """API, broker, and what came of it."""

    def produce(self) -> None:
        for _ in range(ATTEMPTS):
            if self._leader is None:
                self._leader = self._ask_for_leader()
            data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(b"value")}]}]
            request = build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data)
            try:
                answer = self._connected(self._leader).call(request, 9)
                code = answer.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
            except (OSError, ConnectionClosedError):
                code = "closed"
                self._forget(self._leader)
            self.requests.append(("Produce", self._leader, code))
            if code == ErrorCode.NONE:
                return
            self._leader = None
        raise AssertionError(self.requests)

    def _ask_for_leader(self) -> int | None:
        for broker_id in self._addresses:
            try:
                answer = self._connected(broker_id).call(MetadataRequest(topics=None), 1)
            except (OSError, ConnectionClosedError):
                self.requests.append(("Metadata", broker_id, "closed"))
                self._forget(broker_id)
                continue
            [leader] = [each.partitions[0].leader_id for each in answer.topics if each.name == TOPIC]  # type: ignore[attr-defined]
            self.requests.append(("Metadata", broker_id, leader))
            return int(leader)
        return None

    def _connected(self, broker_id: int) -> RawClient:
        if broker_id not in self._connections:
            self._connections[broker_id] = RawClient(*self._addresses[broker_id])
        return self._connections[broker_id]

    def _forget(self, broker_id: int) -> None:
        if broker_id in self._connections:
            self._connections.pop(broker_id).close()

    def close(self) -> None:
        for broker_id in list(self._connections):
            self._forget(broker_id)


def requests_during(
    cluster: Cluster, scenario: Callable[[], Meanwhile], leader: int, *, leads_again: bool
) -> tuple[Meanwhile, list[tuple[str, int, object]]]:
    """One record before the scenario, one when its steps are done, one after it."""
    cluster.wait_for_in_sync_replicas(TOPIC, replicas=BROKERS)
    cluster.move_leader(TOPIC, to=leader)
    client = OneByOne(cluster)
    try:
        client.produce()
        with scenario() as happening:
            eventually(lambda: not happening.is_going_on)
            if leads_again:
                cluster.wait_for_in_sync_replicas(TOPIC, replicas=BROKERS)
                cluster.move_leader(TOPIC, to=leader)
            cluster.wait_for_leader(TOPIC, other_than=-1)
            client.produce()
        cluster.wait_for_leader(TOPIC, other_than=-1)
        client.produce()
    finally:
        client.close()
    return happening, client.requests


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_replay_gives_the_same_requests(cluster: Cluster, name: str) -> None:
    # What is lost is the leader of the topic, too.
    leader = cluster.leader(OFFSETS_TOPIC) if name == "coordinator_loss" else cluster.controller
    # Who leads after each restart depends on which replicas are in sync again by then.
    during = partial(requests_during, cluster, leader=leader, leads_again=name == "rolling_restart")
    scenario, requests = during(lambda: SCENARIOS[name](cluster))
    record = scenario.record()
    again, requests_again = during(lambda: scenarios.replay(cluster, record.to_json()))
    assert again.record() == record
    assert requests_again == requests
