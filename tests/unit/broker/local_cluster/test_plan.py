from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.local_cluster.plan import (
    ClusterOptions,
    broker_command,
    broker_defaults,
    broker_ids,
    check_options,
    service_directory,
    service_port,
)
from odradek.broker.machine.startup_error import StartupError


def _options(**changes: object) -> ClusterOptions:
    return ClusterOptions(**{"brokers": 3, "host": "127.0.0.1", "port": 9092, "data": "/d", **changes})  # type: ignore[arg-type]


def _overrides(options: ClusterOptions, broker_id: int = 0) -> dict[str, str]:
    command = broker_command(options, broker_id, "127.0.0.1:9091", broker_defaults(options))
    given = [command[at + 1] for at, word in enumerate(command) if word == "--override"]
    return dict(each.split("=", 1) for each in given)


def test_ids_ports_and_directories_are_derived() -> None:
    options = _options()
    assert service_port(options) == 9091
    assert service_directory(options) == "/d/zookeeper"
    assert list(broker_ids(options)) == [0, 1, 2]
    overrides = _overrides(options, 2)
    assert overrides["broker.id"] == "2"
    assert overrides["listeners"] == "PLAINTEXT://127.0.0.1:9094"
    assert overrides["log.dirs"] == "/d/broker-2"
    assert overrides["zookeeper.connect"] == "127.0.0.1:9091"
    assert "offsets.topic.replication.factor" not in overrides, "three brokers are enough for Kafka's default"


def test_an_ipv6_host_is_in_brackets() -> None:
    assert _overrides(_options(host="::1"), 1)["listeners"] == "PLAINTEXT://[::1]:9093"


def test_port_0_is_a_free_one_for_all() -> None:
    options = _options(port=0)
    assert service_port(options) == 0
    assert _overrides(options, 2)["listeners"] == "PLAINTEXT://127.0.0.1:0"


@pytest.mark.parametrize(
    ("address", "second"), [("[::1]:8000", "[::1]:8001"), ("127.0.0.1:0", "127.0.0.1:0"), ("none", "none")]
)
def test_faults_are_taken_at_a_port_for_each_broker(address: str, second: str) -> None:
    command = broker_command(_options(faults_listener=address), 1, "127.0.0.1:9091", {})
    assert command[command.index("--faults-listener") + 1] == second


def test_a_small_cluster_has_fewer_replicas_of_internal_topics() -> None:
    one, two = _overrides(_options(brokers=1)), _overrides(_options(brokers=2))
    assert (one["offsets.topic.replication.factor"], two["offsets.topic.replication.factor"]) == ("1", "2")
    assert (one["transaction.state.log.min.isr"], two["transaction.state.log.min.isr"]) == ("1", "2")


def test_what_the_operator_sets_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.properties"
    file.write_text("transaction.state.log.min.isr : 1\n")
    monkeypatch.setenv("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    options = _options(brokers=2, file=str(file), overrides=("offsets.topic.replication.factor=1",), as_version="2.8")
    overrides = _overrides(options)
    assert overrides["offsets.topic.replication.factor"] == "1"
    assert "transaction.state.log.min.isr" not in overrides
    assert "transaction.state.log.replication.factor" not in overrides
    command = broker_command(options, 0, "127.0.0.1:9091", {})
    assert command[4] == str(file)
    assert command[command.index("--as-version") + 1] == "2.8"


@pytest.mark.parametrize(
    "changes",
    [
        {"brokers": 0},
        {"brokers": 101},
        {"port": 65534},
        {"port": 1},
        {"overrides": ("broker.id=7",)},
        {"overrides": ("listeners=PLAINTEXT://:1",)},
    ],
)
def test_options_that_cannot_be(changes: dict[str, object]) -> None:
    check_options(_options())
    check_options(_options(brokers=100, port=65436))
    with pytest.raises(StartupError):
        check_options(_options(**changes))
