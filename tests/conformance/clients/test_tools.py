"""Apache Kafka's command-line tools against the broker: what an operator types, and what is printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.group_member import Member, await_shares, partitions_of
from tests.support.processes.apache.tools import ToolResult, Tools

pytestmark = pytest.mark.oracle

Run = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Admin:
    return Admin(broker.bootstrap)


@pytest.fixture
def run(broker: Broker, tools: Tools) -> Run:
    """A tool with `--bootstrap-server` already given."""
    return lambda tool, *arguments, **options: tools.run(
        tool, "--bootstrap-server", broker.bootstrap, *arguments, **options
    )


def filled(broker: Broker, admin: Admin, topic: str, count: int, partitions: int = 1) -> str:
    admin.create_topic(topic, partitions)
    Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"%d" % i) for i in range(count)])
    return topic


def test_topics(run: Run, unique: Callable[[str], str]) -> None:
    topic = unique("tool")
    created = run("topics", "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=1000")
    assert created.lines == [f"Created topic {topic}."]
    assert topic in run("topics", "--list").lines
    described = run("topics", "--describe", "--topic", topic).lines
    counts = "PartitionCount: 2\tReplicationFactor: 1"
    assert re.fullmatch(
        rf"Topic: {topic}\tTopicId: [\w-]{{22}}\t{counts}\tConfigs: .*retention.ms=1000.*", described[0]
    )
    assert [line.split("\t")[2:6] for line in described[1:]] == [
        [f"Partition: {partition}", "Leader: 0", "Replicas: 0", "Isr: 0"] for partition in (0, 1)
    ]
    run("topics", "--alter", "--topic", topic, "--partitions", "4")
    assert "PartitionCount: 4" in run("topics", "--describe", "--topic", topic).lines[0]
    again = run("topics", "--create", "--topic", topic, status=1)
    assert f"Topic '{topic}' already exists." in again.stdout
    run("topics", "--delete", "--topic", topic)
    assert topic not in run("topics", "--list").lines
    assert "does not exist as expected" in run("topics", "--delete", "--topic", topic, status=1).stdout


def test_broker_api_versions(broker: Broker, run: Run) -> None:
    lines = run("broker-api-versions").lines
    assert lines[0].startswith(f"{broker.bootstrap} (id: 0 rack: null) -> (")
    assert "\tProduce(0): 0 to 11 [usable: 11]," in lines
    assert "\tFetch(1): 0 to 17 [usable: 17]," in lines
    assert not [line for line in lines if "UNSUPPORTED" in line and "(" not in line]


def test_configs(run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("configured"))
    which = ("--entity-type", "topics", "--entity-name", topic)
    altered = run("configs", "--alter", *which, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    assert altered.lines == [f"Completed updating config for topic {topic}."]
    described = run("configs", "--describe", *which).lines
    assert described[0] == f"Dynamic configs for topic {topic} are:"
    assert sorted(line.split()[0] for line in described[1:]) == ["cleanup.policy=compact,delete", "retention.ms=5000"]
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in "\n".join(described)
    run("configs", "--alter", *which, "--delete-config", "retention.ms,cleanup.policy")
    everything = run("configs", "--describe", "--all", *which).lines
    assert any(line.startswith("  cleanup.policy=delete sensitive=false") for line in everything)
    refused = run("configs", "--alter", *which, "--add-config", "segment.bytes=1", status=1)
    assert "InvalidConfigurationException" in refused.stdout + refused.stderr
    static = run("configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "0").lines
    assert any("offsets.topic.num.partitions=4" in line and "STATIC_BROKER_CONFIG" in line for line in static)


def test_consumer_groups(broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    topic, group = filled(broker, admin, unique("groups"), 10), unique("tool-group")
    with Member(broker.bootstrap, group, [topic], enable_auto_commit=True, client_id="member") as member:
        await_shares([member], partitions_of({topic: 1}), [1])
        assert group in run("consumer-groups", "--list").lines
        described = run("consumer-groups", "--describe", "--group", group, "--members", "--verbose").lines
        assert described[-1].split()[0] == group
        assert described[-1].endswith("(0)")
        state = run("consumer-groups", "--describe", "--group", group, "--state").lines
        assert state[-1].split()[-2:] == ["Stable", "1"]
        refused = run("consumer-groups", "--delete", "--group", group, status=None)
        assert "GroupNotEmptyException" in refused.stdout
    idle = run("consumer-groups", "--describe", "--group", group)
    assert f"Consumer group '{group}' has no active members." in idle.stdout + idle.stderr
    assert idle.lines[-1].split()[:6] == [group, topic, "0", "10", "10", "0"]
    reset = ("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic)
    planned = run(*reset, "--to-offset", "4", "--dry-run").lines
    assert planned[-1].split()[-4:] == [group, topic, "0", "4"]
    run(*reset, "--shift-by", "-3", "--execute")
    assert run("consumer-groups", "--describe", "--group", group).lines[-1].split()[3:6] == ["7", "10", "3"]
    deleted = run("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic).lines
    assert deleted[-1].split()[-3:] == [topic, "0", "Successful"]
    # An empty group ends with its last offset.
    assert "GroupIdNotFoundException" in run("consumer-groups", "--delete", "--group", group).stdout
    assert group not in run("consumer-groups", "--list").lines


def test_offsets_and_records(
    broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = filled(broker, admin, unique("offsets"), 10, partitions=2)
    assert run("get-offsets", "--topic", topic).lines == [f"{topic}:0:10", f"{topic}:1:0"]
    partition = {"topic": topic, "partition": 0, "offset": 3}
    plan = tmp_path / "records.json"
    plan.write_text(json.dumps({"partitions": [partition], "version": 1}))
    deleted = run("delete-records", "--offset-json-file", str(plan)).lines
    assert deleted[-1] == f"partition: {topic}-0\tlow_watermark: 3"
    earliest = run("get-offsets", "--topic-partitions", f"{topic}:0", "--time", "earliest").lines
    assert earliest == [f"{topic}:0:3"]


def test_log_dirs(broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = filled(broker, admin, unique("dirs"), 1)
    lines = run("log-dirs", "--describe", "--topic-list", topic).lines
    answer = json.loads(next(line for line in lines if line.startswith("{")))
    [on_broker] = answer["brokers"]
    [directory] = on_broker["logDirs"]
    assert directory["logDir"] == str(broker.log_dir)
    assert directory["error"] is None
    [partition] = directory["partitions"]
    assert (partition["partition"], partition["offsetLag"], partition["isFuture"]) == (f"{topic}-0", 0, False)
    assert partition["size"] == sum(log.stat().st_size for log in (broker.log_dir / f"{topic}-0").glob("*.log"))


def test_cluster_and_features(broker: Broker, tools: Tools) -> None:
    identified = tools.run("cluster", "cluster-id", "--bootstrap-server", broker.bootstrap).lines
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", identified[0])
    assert tools.run("features", "--bootstrap-server", broker.bootstrap, "describe").lines == []


def test_performance_tools(broker: Broker, tools: Tools, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("perf"))
    produced = tools.run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", "5000", "--record-size", "100", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}", "acks=all", "compression.type=zstd"),
    )
    assert produced.lines[-1].startswith("5000 records sent")
    consumed = tools.run(
        "consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--messages", "5000", "--hide-header"),
    )
    assert consumed.lines[-1].split(", ")[4] == "5000"


def test_verifiable_producer_and_consumer(
    broker: Broker, tools: Tools, admin: Admin, unique: Callable[[str], str]
) -> None:
    topic = admin.create_topic(unique("verifiable"))
    address = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--max-messages", "200")
    events = [json.loads(line) for line in tools.run("verifiable-producer", *address).lines]
    sent = [event["offset"] for event in events if event["name"] == "producer_send_success"]
    assert sent == list(range(200))
    read = tools.run("verifiable-consumer", *address, "--group-id", unique("verifiable"), "--reset-policy", "earliest")
    events = [json.loads(line) for line in read.lines]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 200


def test_leader_election_and_reassignment(
    broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = filled(broker, admin, unique("elect"), 1)
    elected = run("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert f"Valid replica already elected for partitions {topic}-0" in elected.stdout
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [0]}]}))
    started = run("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    assert f"Successfully started partition reassignment for {topic}-0" in started.stdout
    verified = run("reassign-partitions", "--reassignment-json-file", str(plan), "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in verified.stdout


@pytest.mark.needs(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def test_quotas_and_scram_users(run: Run, unique: Callable[[str], str]) -> None:
    user = unique("user")
    which = ("--entity-type", "users", "--entity-name", user)
    run("configs", "--alter", *which, "--add-config", "producer_byte_rate=1000")
    run("configs", "--alter", *which, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    lines = run("configs", "--describe", *which).stdout
    assert "producer_byte_rate=1000.0" in lines
    assert "SCRAM credential configs for user-principal" in lines
    assert "SCRAM-SHA-256=iterations=8192" in lines
    assert "secret" not in lines
    run("configs", "--alter", *which, "--delete-config", "SCRAM-SHA-256")
    run("configs", "--alter", *which, "--delete-config", "producer_byte_rate")
    lines = run("configs", "--describe", *which).stdout
    assert "1000" not in lines
    assert "8192" not in lines
