"""The request log beside Apache Kafka's: switched on while the broker runs, and the fields of its lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.support.broker import Broker
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build

BROKER_LOGGER = 8
SET, DELETE = 0, 1
CLIENT = "logged client"
JUNK_CONNECTIONS, JUNK_REQUESTS = 2_000, 2_000
JUNK_LINES_MAX = 1_500
"""Some kinds of lines, each with a burst and a few a second."""
SECRET = b"a record that nobody but its consumers may see"
LINE = re.compile(r"Completed request:(\{.*\})")
TIMES = ("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs", "sendTimeMs")


def alter(broker: Broker, name: str, operation: int, value: str | None) -> int:
    configs = [{"name": name, "config_operation": operation, "value": value}]
    request = build(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        resources=[{"resource_type": BROKER_LOGGER, "resource_name": "0", "configs": configs}],
    )
    with RawClient(broker.host, broker.port) as client:
        answer = cast("IncrementalAlterConfigsResponse", client.call(request, 1))
    return answer.responses[0].error_code


def lines_of(broker: Broker, client_id: str = CLIENT) -> list[dict[str, object]]:
    text = broker.log_text()  # type: ignore[attr-defined]
    found = [json.loads(line) for line in LINE.findall(text)]
    return [line for line in found if line["requestHeader"]["clientId"] == client_id]


def ask(broker: Broker, client_id: str) -> None:
    with RawClient(broker.host, broker.port, client_id) as client:
        client.call(build(ApiKey.METADATA, topics=[{"name": "logged"}], allow_auto_topic_creation=False), 9)
        data = [{"name": "logged", "partition_data": [{"index": 0, "records": batch(SECRET)}]}]
        client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=5_000, topic_data=data), 9)
        client.call(build(ApiKey.HEARTBEAT, group_id="g", generation_id=1, member_id="m"), 4)


@pytest.mark.oracle
def test_lines_of_all_clients(broker: Broker) -> None:
    make_topic(broker, "logged")
    assert alter(broker, "kafka.request.logger", SET, "DEBUG") == 0
    try:
        ask(broker, CLIENT)
        metadata, produce, heartbeat = eventually(lambda: lines_of(broker), accept=lambda found: len(found) == 3)
    finally:
        alter(broker, "kafka.request.logger", SET, "WARN")
    names = [line["requestHeader"]["requestApiKeyName"] for line in (metadata, produce, heartbeat)]  # type: ignore[index]
    assert names == ["METADATA", "PRODUCE", "HEARTBEAT"]
    assert list(metadata) == [
        *("isForwarded", "requestHeader", "request", "response", "connection", "totalTimeMs", "requestQueueTimeMs"),
        *("localTimeMs", "remoteTimeMs", "throttleTimeMs", "responseQueueTimeMs", "sendTimeMs", "securityProtocol"),
        *("principal", "listener", "clientInformation"),
    ]
    assert metadata["request"] == {
        "topics": [{"name": "logged"}],
        "allowAutoTopicCreation": False,
        "includeClusterAuthorizedOperations": False,
        "includeTopicAuthorizedOperations": False,
    }
    assert list(cast("dict[str, object]", metadata["response"])) == [
        *("throttleTimeMs", "brokers", "clusterId", "controllerId", "topics", "clusterAuthorizedOperations")
    ]
    assert produce["request"] == {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 5_000,
        "topicData": [{"name": "logged", "partitionData": [{"index": 0, "recordsSizeInBytes": len(batch(SECRET))}]}],
    }
    # Not the coordinator, or of an unknown member: other tests may have made the topic of the groups.
    assert heartbeat["response"] in ({"throttleTimeMs": 0, "errorCode": code} for code in (16, 25))
    for line in (metadata, produce, heartbeat):
        assert line["securityProtocol"] == "PLAINTEXT"
        assert line["principal"] == "User:ANONYMOUS"
        assert line["listener"] == "PLAINTEXT"
        assert all(isinstance(line[name], float) for name in TIMES)
        assert re.fullmatch(rf"127\.0\.0\.1:{broker.port}-127\.0\.0\.1:\d+-\d+", str(line["connection"]))
    assert SECRET not in broker.log_text().encode()  # type: ignore[attr-defined]


def test_lines_of_one_client(tmp_path: Path) -> None:
    odradek = OdradekBroker(tmp_path)
    with running(odradek):
        check_one_client(odradek)


def check_one_client(odradek: OdradekBroker) -> None:
    make_topic(odradek, "logged")
    assert alter(odradek, "kafka.request.logger.one of many", SET, "DEBUG") == 0
    ask(odradek, "another")
    ask(odradek, "one of many")
    assert eventually(lambda: lines_of(odradek, "one of many"), accept=lambda found: len(found) == 3)
    assert alter(odradek, "kafka.request.logger.one of many", DELETE, None) == 0
    ask(odradek, "one of many")
    assert lines_of(odradek, "another") == []
    assert len(lines_of(odradek, "one of many")) == 3


def test_flood_of_junk_is_some_lines(tmp_path: Path) -> None:
    """Bad frames, refused records and requests that fail: each is a line in Apache Kafka's log."""
    with running(OdradekBroker(tmp_path, {"socket.listen.backlog.size": "4096"})) as odradek:
        make_topic(odradek, "flooded")
        before = odradek.log_text().count("\n")
        for number in range(JUNK_CONNECTIONS):
            with RawClient(odradek.host, odradek.port) as client:
                client.send_bytes((b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\5\xff\xff\xff\xff\xff")[number % 2])
        damaged = bytearray(batch(b"value"))
        damaged[-1] ^= 1
        data = [{"name": "flooded", "partition_data": [{"index": 0, "records": bytes(damaged)}]}]
        produce = build(ApiKey.PRODUCE, acks=-1, timeout_ms=5_000, topic_data=data)
        leave = build(ApiKey.LEAVE_GROUP, group_id="g", members=[{"member_id": "m"}])
        envelope = build(ApiKey.ENVELOPE, request_data=b"", request_principal=b"", client_host_address=b"")
        delete = build(ApiKey.DELETE_RECORDS, topics=[{"name": "flooded", "partitions": []}], timeout_ms=1_000)
        for request, version in ((produce, 9), (leave, 4), (delete, 2)):
            with RawClient(odradek.host, odradek.port) as client:
                for _ in range(JUNK_REQUESTS):
                    client.send(request, version)
                    client.receive_frame()
        for _ in range(JUNK_CONNECTIONS):
            with RawClient(odradek.host, odradek.port) as client:
                client.send(envelope, 0)
        lines = odradek.log_text().count("\n") - before
        assert lines < JUNK_LINES_MAX
