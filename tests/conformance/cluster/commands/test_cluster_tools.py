"""Apache Kafka's tools against a cluster: topics, reassignment, elections, configurations, verification.

Three brokers, and a fourth that joins on the way and takes over from one that retires. Each has a rack of two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.support.admin import Admin
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.disks.replica_files import await_identical, partition_dirs
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.jvm import java_command
from tests.support.processes.apache.tools import TOOL_CLASSES, ToolResult, Tools
from tests.support.processes.process import ManagedProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

RACKS = {0: "north", 1: "south", 2: "south", 3: "north"}
THROTTLE = 1_000  # bytes/s: a thousandth of the topic, so the move outlasts the tools on a busy machine, too
Run = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster(
        dict.fromkeys(RACKS, target),
        {"replica.fetch.max.bytes": "100000"},  # so that a throttle has something to hold back
        own_settings=lambda broker_id: {"broker.rack": RACKS[broker_id]},
    )
    cluster.start(0, 1, 2)
    return cluster


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Admin:
    return cluster.admin()


@pytest.fixture
def run(cluster: Cluster, tools: Tools) -> Run:
    """A tool with `--bootstrap-server` already given: a broker that is not the controller."""
    other = max(cluster.running - {cluster.tree.controller()})
    return lambda tool, *arguments, **options: tools.run(
        tool, "--bootstrap-server", cluster.address(other), *arguments, **options
    )


def written(path: Path, content: Mapping[str, Any] | str) -> str:
    """A JSON file for a tool."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def filled(cluster: Cluster, topic: str, count: int, size: int = 100) -> str:
    messages = [Message(key=None, value=b"%d" % i + b" " * size) for i in range(count)]
    Confluent().produce(cluster.bootstrap, topic, messages)
    return topic


def replicas(cluster: Cluster, topic: str) -> dict[int, tuple[int, ...]]:
    return {partition: state.replicas for partition, state in cluster.tree.partitions(topic).items()}


def test_topics(cluster: Cluster, run: Run) -> None:
    created = run("topics", "--create", "--topic", "spread", "--partitions", "6", "--replication-factor", "2")
    assert created.lines == ["Created topic spread."]
    cluster.await_complete("spread")
    for partition, ids in replicas(cluster, "spread").items():
        assert {RACKS[broker_id] for broker_id in ids} == {"north", "south"}, (partition, ids)
    described = run("topics", "--describe", "--topic", "spread").lines
    assert "PartitionCount: 6\tReplicationFactor: 2\t" in described[0]
    for partition, line in enumerate(described[1:]):
        state = cluster.tree.partition("spread", partition)
        names = ",".join(map(str, state.replicas))
        assert line.split("\t")[2:5] == [f"Partition: {partition}", f"Leader: {state.leader}", f"Replicas: {names}"]
        assert line.split("\t")[5] == f"Isr: {','.join(map(str, state.isr))}"
    too_many = run("topics", "--create", "--topic", "wide", "--replication-factor", "4", status=1).stdout
    assert "Replication factor: 4 larger than available brokers: 3." in too_many
    run("topics", "--create", "--topic", "manual", "--replica-assignment", "0:1,1:2,2:0")
    assert replicas(cluster, "manual") == {0: (0, 1), 1: (1, 2), 2: (2, 0)}
    run("topics", "--alter", "--topic", "manual", "--partitions", "4")
    cluster.await_complete("manual")
    assert len(replicas(cluster, "manual")) == 4
    assert run("topics", "--describe", "--under-replicated-partitions").lines == []
    run("topics", "--delete", "--topic", "manual")
    eventually(
        lambda: {d for i in (0, 1, 2) for d in partition_dirs(cluster.log_dir(i)) if d.startswith("manual")},
        accept=lambda found: not found,
    )


def test_a_broker_joins_and_another_retires(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """What operators do: --generate, --execute with a throttle, --verify, and nothing is left on the old one."""
    filled(cluster, "spread", 500)
    before = replicas(cluster, "spread")
    cluster.start(3)
    topics = written(tmp_path / "topics.json", {"version": 1, "topics": [{"topic": "spread"}]})
    generated = run(
        "reassign-partitions", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3"
    ).stdout
    current, proposed = re.findall(r"^\{.*\}$", generated, re.MULTILINE)
    assert {p["partition"]: tuple(p["replicas"]) for p in json.loads(current)["partitions"]} == before
    plan = written(tmp_path / "plan.json", proposed)
    executed = run("reassign-partitions", "--execute", "--reassignment-json-file", plan, "--throttle", "10000000")
    assert "The inter-broker throttle limit was set to 10000000 B/s" in executed.stdout
    assert "Successfully started partition reassignments for spread-0," in executed.stdout
    cluster.await_complete("spread")
    verified = run("reassign-partitions", "--verify", "--reassignment-json-file", plan).stdout
    assert verified.count("is completed.") == 6
    assert "Clearing broker-level throttles on brokers 0,1,2,3" in verified
    assert "Clearing topic-level throttles on topic spread" in verified
    assert cluster.tree.get("/config/topics/spread")["config"] == {}
    assert cluster.tree.get("/config/brokers/1")["config"] == {}
    wanted = {p["partition"]: tuple(p["replicas"]) for p in json.loads(proposed)["partitions"]}
    assert replicas(cluster, "spread") == wanted
    assert all(0 not in ids and {RACKS[i] for i in ids} == {"north", "south"} for ids in wanted.values())
    await_identical(cluster, "spread")
    eventually(lambda: partition_dirs(cluster.log_dir(0)), accept=lambda found: not found)
    assert {broker_id for broker_id in (1, 2, 3) if partition_dirs(cluster.log_dir(broker_id))} == {1, 2, 3}
    received = Confluent().consume(cluster.bootstrap, "spread", 500)
    assert [int(each.value or b"") for each in received] == list(range(500))


def test_a_reassignment_is_cancelled(cluster: Cluster, admin: Admin, run: Run, tmp_path: Path) -> None:
    admin.create_assigned_topic("slow", [[1, 2]])
    filled(cluster, "slow", 1000, size=1000)
    plan = written(
        tmp_path / "plan.json",
        {
            "version": 1,
            "partitions": [{"topic": "slow", "partition": 0, "replicas": [3, 1], "log_dirs": ["any", "any"]}],
        },
    )
    run("reassign-partitions", "--execute", "--reassignment-json-file", plan, "--throttle", str(THROTTLE))
    node = cluster.tree.get("/brokers/topics/slow")
    assert (node["adding_replicas"], node["removing_replicas"]) == ({"0": [3]}, {"0": [2]})
    assert run("reassign-partitions", "--list").lines == [
        "Current partition reassignments:",
        "slow-0: replicas: 3,1,2. adding: 3. removing: 2.",
    ]
    assert cluster.tree.get("/config/topics/slow")["config"] == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    }
    assert cluster.tree.get("/config/brokers/3")["config"] == {
        "leader.replication.throttled.rate": str(THROTTLE),
        "follower.replication.throttled.rate": str(THROTTLE),
    }
    progress = run("reassign-partitions", "--verify", "--reassignment-json-file", plan).stdout
    assert "Reassignment of partition slow-0 is still in progress." in progress
    assert set(cluster.tree.partition("slow").isr) == {1, 2}, "the throttle does not slow it down"
    cancelled = run("reassign-partitions", "--cancel", "--reassignment-json-file", plan).stdout
    assert "Successfully cancelled partition reassignment for: slow-0" in cancelled
    cluster.await_complete("slow")
    assert replicas(cluster, "slow") == {0: (1, 2)}
    eventually(lambda: partition_dirs(cluster.log_dir(3)), accept=lambda found: "slow-0" not in found)
    assert run("reassign-partitions", "--list").lines == ["No partition reassignments found."]


def test_preferred_leaders(cluster: Cluster, admin: Admin, run: Run, tmp_path: Path) -> None:
    admin.create_assigned_topic("elected", [[1, 2, 3], [2, 3, 1]])
    cluster.await_complete("elected")
    reordered = {
        "version": 1,
        "partitions": [
            {"topic": "elected", "partition": 0, "replicas": [2, 3, 1]},
            {"topic": "elected", "partition": 1, "replicas": [3, 1, 2]},
        ],
    }
    run("reassign-partitions", "--execute", "--reassignment-json-file", written(tmp_path / "plan.json", reordered))
    cluster.await_complete("elected")
    assert [cluster.tree.partition("elected", p).leader for p in (0, 1)] == [1, 2], "nobody has asked for an election"
    one = ("--topic", "elected", "--partition", "0")
    elected = run("leader-election", "--election-type", "preferred", *one)
    assert elected.lines == ["Successfully completed leader election (PREFERRED) for partitions elected-0"]
    again = run("leader-election", "--election-type", "preferred", *one)
    assert again.lines == ["Valid replica already elected for partitions elected-0"]
    everything = run("leader-election", "--election-type", "preferred", "--all-topic-partitions").stdout
    assert "Successfully completed leader election (PREFERRED) for partitions elected-1" in everything
    assert [cluster.tree.partition("elected", p).leader for p in (0, 1)] == [2, 3]
    cluster.await_known("elected")


def test_configurations_reach_every_broker(cluster: Cluster, admin: Admin, run: Run) -> None:
    """Asked of one broker, in force on all: the leaders of the three partitions refuse what is too large now."""
    admin.create_assigned_topic("limited", [[1], [2], [3]])
    topic = ("--entity-type", "topics", "--entity-name", "limited")
    run("configs", "--alter", *topic, "--add-config", "max.message.bytes=200")
    for partition in range(3):
        eventually(
            lambda partition=partition: produce_error(cluster, "limited", partition, 1000) == "MSG_SIZE_TOO_LARGE"
        )  # type: ignore[misc]
    everyone = ("--entity-type", "brokers", "--entity-default")
    assert run("configs", "--alter", *everyone, "--add-config", "log.retention.ms=7200000").lines == [
        "Completed updating default config for brokers in the cluster."
    ]
    for broker_id in (1, 2, 3):
        eventually(
            lambda broker_id=broker_id: broker_config(cluster, broker_id, "log.retention.ms"),  # type: ignore[misc]
            accept=lambda value: value == "7200000",
        )
    alone = ("--entity-type", "brokers", "--entity-name", "2")
    run("configs", "--alter", *alone, "--add-config", "log.retention.ms=3600000")
    eventually(lambda: broker_config(cluster, 2, "log.retention.ms"), accept=lambda value: value == "3600000")
    assert broker_config(cluster, 3, "log.retention.ms") == "7200000"
    run("configs", "--alter", *topic, "--delete-config", "max.message.bytes")
    eventually(lambda: produce_error(cluster, "limited", 0, 1000) is None)


def produce_error(cluster: Cluster, topic: str, partition: int, size: int) -> str | None:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    errors: list[str | None] = []
    producer.produce(
        topic,
        b"x" * size,
        partition=partition,
        on_delivery=lambda error, message: errors.append(None if error is None else error.name()),
    )
    assert producer.flush(20) == 0
    return errors[0]


def broker_config(cluster: Cluster, broker_id: int, name: str) -> str:
    resource = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.RESOURCE_BROKER, str(broker_id))
    client = Admin(cluster.address(broker_id)).client
    return str(client.describe_configs([resource])[resource].result(20)[name].value)


def test_replica_verification(cluster: Cluster, tmp_path: Path) -> None:
    """The tool reads every replica as a follower would, and compares."""
    arguments = ("--broker-list", cluster.bootstrap, "--topics-include", "spread|slow", "--report-interval-ms", "500")
    process = ManagedProcess(
        java_command(TOOL_CLASSES["replica-verification"], *arguments), tmp_path / "verification.log"
    )
    process.start()
    try:
        process.wait_for_line(r"max lag is 0 for partition .* at offset", 30)
        seen = process.log_text()
    finally:
        process.kill()
    assert "partition slow-0" in seen or "partition spread-" in seen
    assert "different" not in seen
    assert "not match" not in seen
