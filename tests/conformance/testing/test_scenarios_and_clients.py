"""Scenarios of one broker as clients see them, and the same again from the record of what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from odradek.broker.faults.record import FaultRecord
from odradek.testing import Broker, scenarios
from odradek.testing.scenarios.scenario import Scenario
from tests.support.loads.fault_runs import TOPIC, Outcome, run
from tests.support.loads.faulted_clients import (
    CLIENT_ID,
    Aiokafka,
    FaultedClient,
    Java,
    KafkaPython,
    Librdkafka,
)

SLOW_MS = 300

NAMES = ("librdkafka", "aiokafka", "kafka-python", "java")

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
    yield {"librdkafka": Librdkafka(), "aiokafka": Aiokafka(), "kafka-python": KafkaPython(), "java": java}
    java.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_flush_interval_messages=1) as started:  # so that records wait for the disk
        yield started


@pytest.mark.parametrize("client", NAMES)
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


@pytest.mark.parametrize("client", NAMES)
def test_a_full_disk(client: str, clients: dict[str, FaultedClient], broker: Broker) -> None:
    scenario = scenarios.disk_full(broker)

    def until_a_record_is_refused() -> None:
        broker.wait_for_request("Produce", client_id=CLIENT_ID)
        scenario.__exit__(None, None, None)
        broker.clock.advance("1s")

    with ThreadPoolExecutor(1) as pool:

        def begin() -> None:
            scenario.__enter__()
            ending.append(pool.submit(until_a_record_is_refused))

        ending: list[Future[None]] = []
        first = run(broker, clients[client], "produce", begin)
        ending[0].result()
    record = scenario.record()
    assert {event.fault["code"] for event in record.events} == {"KAFKA_STORAGE_ERROR"}
    check_replay(broker, clients[client], first, record)


@pytest.mark.parametrize("client", NAMES)
def test_a_slow_disk(client: str, clients: dict[str, FaultedClient], broker: Broker) -> None:
    scenario = scenarios.slow_disk(broker, f"{SLOW_MS}ms")
    first = run(broker, clients[client], "produce", scenario.__enter__)
    record = scenario.record()
    scenario.__exit__(None, None, None)
    assert "Produce" in {event.api for event in record.events if event.fault["action"] == "delay"}
    assert first[1] >= SLOW_MS / 1000
    again = check_replay(broker, clients[client], first, record)
    assert again[1] >= SLOW_MS / 1000


def check_replay(broker: Broker, client: FaultedClient, first: Outcome, record: FaultRecord) -> Outcome:
    """Without the disk the client sends the same requests, and gets the same answers."""
    assert (first[0].answer, first[0].records) == ("offset 0", 1)
    again = run(broker, client, "produce", lambda: broker.faults.replay(record.to_json()))
    broker.faults.assert_replayed()
    assert (again[0].answer, again[0].records, again[2]) == ("offset 0", 1, record.sequence())
    return again
