"""Replicas that move between the log directories of a broker, as operators and clients see it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.numbered_load import PARTITIONS, Load, check_complete
from tests.support.processes.apache.tools import Tools
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

NewBroker = Callable[..., Broker]
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER, SET, DELETE = 4, 0, 1


class Disks:
    """A broker with several log directories."""

    def __init__(self, new_broker: NewBroker, path: Path, count: int = 3, **settings: str) -> None:
        self.dirs = [str(path / f"disk-{number}") for number in range(count)]
        self.broker = new_broker(**{"log.dirs": ",".join(self.dirs), "log.segment.delete.delay.ms": "1000", **settings})

    def call(self, key: ApiKey, version: int, **fields: object) -> object:
        client = RawClient(self.broker.host, self.broker.port)
        try:
            return client.call(build(key, **fields), version)
        finally:
            client.close()

    def move(self, topic: str, partition: int, path: str) -> int:
        """The error code of the answer."""
        dirs = [{"path": path, "topics": [{"name": topic, "partitions": [partition]}]}]
        answer = self.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, dirs=dirs)
        return int(answer.results[0].partitions[0].error_code)  # type: ignore[attr-defined]

    def where(self, topic: str, partition: int) -> list[tuple[str, bool]]:
        """The directories the partition has a log in, and whether it is a future one."""
        asked = [{"topic": topic, "partitions": [partition]}]
        answer = self.call(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=asked)
        return sorted(
            (found.log_dir, part.is_future_key)
            for found in answer.results  # type: ignore[attr-defined]
            for named in found.topics
            for part in named.partitions
        )

    def await_in(self, topic: str, partition: int, path: str) -> None:
        eventually(lambda: self.where(topic, partition), accept=lambda found: found == [(path, False)], timeout_s=60)

    def elsewhere(self, topic: str, partition: int) -> str:
        """A directory in which the partition is not."""
        [(here, _)] = self.where(topic, partition)
        return next(path for path in self.dirs if path != here)

    def throttle(self, bytes_per_second: int | None) -> None:
        change = {
            "name": THROTTLE,
            "config_operation": DELETE if bytes_per_second is None else SET,
            "value": None if bytes_per_second is None else str(bytes_per_second),
        }
        resources = [{"resource_type": BROKER, "resource_name": "0", "configs": [change]}]
        answer = self.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        assert answer.responses[0].error_code == 0, answer  # type: ignore[attr-defined]


def test_a_partition_moves_while_it_is_written_and_read(new_broker: NewBroker, tmp_path: Path) -> None:
    disks = Disks(new_broker, tmp_path, **{"log.segment.bytes": "100000"})
    Admin(disks.broker.bootstrap).create_topic("moving", PARTITIONS)
    load = Load(disks.broker.bootstrap, "moving", idempotent=True)
    eventually(lambda: load.total, accept=lambda total: total > 3_000)
    for turn in range(4):
        partition = turn % PARTITIONS
        target = disks.elsewhere("moving", partition)
        assert disks.move("moving", partition, target) == 0
        disks.await_in("moving", partition, target)
        written = load.total
        eventually(lambda: load.total, accept=lambda total, before=written: total > before + 100)
    load.finish()
    check_complete(load, disks.broker.bootstrap)
    eventually(
        lambda: sorted(name for path in disks.dirs for name in os.listdir(path) if name.startswith("moving")),
        accept=lambda names: names == [f"moving-{partition}" for partition in range(PARTITIONS)],
        timeout_s=90,
    )


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_move_goes_on_after_a_restart(new_broker: NewBroker, tmp_path: Path, ending: str) -> None:
    disks = Disks(new_broker, tmp_path, 2)
    Admin(disks.broker.bootstrap).create_topic("resumed", 1)
    messages = [Message(key=b"%d" % number, value=b"v" * 10_000) for number in range(400)]
    for start in range(0, len(messages), 20):
        Confluent().produce(disks.broker.bootstrap, "resumed", messages[start : start + 20])
    target = disks.elsewhere("resumed", 0)
    disks.throttle(100_000)
    assert disks.move("resumed", 0, target) == 0
    assert (target, True) in disks.where("resumed", 0)
    getattr(disks.broker, ending)()
    disks.broker.start()
    assert (target, True) in disks.where("resumed", 0), "it is throttled still"
    disks.throttle(None)
    disks.await_in("resumed", 0, target)
    received = Confluent().consume(disks.broker.bootstrap, "resumed", len(messages))
    assert [(found.offset, found.key) for found in received] == [(n, m.key) for n, m in enumerate(messages)]


def test_a_move_is_cancelled_and_redirected(new_broker: NewBroker, tmp_path: Path) -> None:
    disks = Disks(new_broker, tmp_path, 3)
    Admin(disks.broker.bootstrap).create_topic("turned", 1)
    messages = [Message(key=None, value=b"v" * 10_000) for _ in range(300)]
    Confluent().produce(disks.broker.bootstrap, "turned", messages)
    [(here, _)] = disks.where("turned", 0)
    first, second = (path for path in disks.dirs if path != here)
    disks.throttle(10_000)
    assert disks.move("turned", 0, first) == 0
    assert disks.where("turned", 0) == sorted([(here, False), (first, True)])
    assert disks.move("turned", 0, second) == 0
    assert disks.where("turned", 0) == sorted([(here, False), (second, True)])
    assert disks.move("turned", 0, here) == 0
    assert disks.where("turned", 0) == [(here, False)]
    assert disks.move("turned", 0, second) == 0
    Admin(disks.broker.bootstrap).delete_topic("turned")
    eventually(lambda: disks.where("turned", 0), accept=lambda found: not found)


def test_a_directory_is_chosen_before_the_topic_exists(new_broker: NewBroker, tmp_path: Path) -> None:
    disks = Disks(new_broker, tmp_path, 2)
    for number, path in enumerate([disks.dirs[1], disks.dirs[1], disks.dirs[0]]):
        topic = f"chosen-{number}"
        assert disks.move(topic, 0, path) == 3, "UNKNOWN_TOPIC_OR_PARTITION, and yet it is remembered"
        Admin(disks.broker.bootstrap).create_topic(topic, 1)
        assert disks.where(topic, 0) == [(path, False)]
    long_name = "x" * 215
    assert disks.move(long_name, 0, disks.dirs[0]) == 17, "INVALID_TOPIC_EXCEPTION: the future name would be too long"
    assert disks.move("chosen-0", 0, disks.dirs[0] + "/") == 57, "LOG_DIR_NOT_FOUND: paths are compared as they are"


def test_kafka_tools_move_replicas_and_see_where_they_are(new_broker: NewBroker, tmp_path: Path, tools: Tools) -> None:
    disks = Disks(new_broker, tmp_path, 2)
    topic = Admin(disks.broker.bootstrap).create_topic("assigned", 2)
    Confluent().produce(disks.broker.bootstrap, topic, [Message(key=None, value=b"%d" % n) for n in range(50)])
    plan = tmp_path / "plan.json"
    targets = [disks.elsewhere(topic, partition) for partition in range(2)]
    partitions = [
        {"topic": topic, "partition": partition, "replicas": [0], "log_dirs": [target]}
        for partition, target in enumerate(targets)
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))

    def reassign(*arguments: str) -> list[str]:
        return tools.run(
            "reassign-partitions",
            "--bootstrap-server",
            disks.broker.bootstrap,
            "--reassignment-json-file",
            str(plan),
            *arguments,
        ).lines

    executed = reassign("--execute", "--replica-alter-log-dirs-throttle", "10000000")
    for partition, target in enumerate(targets):
        started = f"Successfully started moving log directory to {target} for replica {topic}-{partition} with broker 0"
        assert started in executed
        disks.await_in(topic, partition, target)
    verified = reassign("--verify")
    assert "Clearing broker-level throttles on broker 0" in verified
    for partition in range(2):
        assert f"Reassignment of replica {topic}-{partition}-0 completed successfully." in verified
    described = tools.run(
        "log-dirs", "--bootstrap-server", disks.broker.bootstrap, "--describe", "--topic-list", topic
    ).lines[-1]
    found = {
        part["partition"]: (each["logDir"], part["isFuture"], part["offsetLag"])
        for broker in json.loads(described)["brokers"]
        for each in broker["logDirs"]
        for part in each["partitions"]
    }
    assert found == {f"{topic}-{partition}": (target, False, 0) for partition, target in enumerate(targets)}
