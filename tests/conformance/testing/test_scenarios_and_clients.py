"""Scenarios of one broker as clients see them, and the same again from the record of what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from odradek.testing import Broker, scenarios
from odradek.testing.scenarios.scenario import Scenario
from tests.support.loads.fault_runs import TOPIC, Outcome, run
from tests.support.loads.faulted_clients import Aiokafka, FaultedClient, Java, KafkaPython

SCENARIOS: dict[str, tuple[str, Callable[[Broker], Scenario], str, set[str]]] = {
    "leader_move": (
        "produce",
        lambda broker: scenarios.leader_move(broker, TOPIC),
        "offset 0",
        {"not_leader", "leader_not_available"},
    ),
    "coordinator_failover": (
        "commit",
        scenarios.coordinator_failover,
        "committed",
        {"coordinator_moved", "coordinator_not_available", "coordinator_loading"},
    ),
}


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, FaultedClient]]:
    java = Java()
    yield {"aiokafka": Aiokafka(), "kafka-python": KafkaPython(), "java": java}
    java.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.mark.parametrize("client", ["aiokafka", "kafka-python", "java"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_client_gets_over_it(name: str, client: str, clients: dict[str, FaultedClient], broker: Broker) -> None:
    work, scenario, answer, faults = SCENARIOS[name]
    first: Outcome = run(broker, clients[client], work, lambda: scenario(broker).__enter__())
    record = broker.faults.record()
    assert first[0].answer == answer
    assert {event.rule for event in record.events} == faults
    again = run(broker, clients[client], work, lambda: broker.faults.replay(record.to_json()))
    broker.faults.assert_replayed()
    assert (again[0], again[2]) == (first[0], first[2])
