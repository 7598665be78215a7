"""Apache's own TransactionalMessageCopier, killed and started again ten times: each message is copied exactly once."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.processes.apache.jvm import java_command
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

KILLS = 10
MESSAGES = 6_000
TRANSACTION_SIZE = 20
END_S = 60


def copier(broker: Broker, source: str, sink: str, output: Path) -> subprocess.Popen[bytes]:
    arguments = {
        "broker-list": broker.bootstrap,
        "input-topic": source,
        "input-partition": "0",
        "output-topic": sink,
        "consumer-group": "copiers",
        "transactional-id": "copier",
        "transaction-size": str(TRANSACTION_SIZE),
        "transaction-timeout": "10000",
        "max-messages": "-1",
    }
    words = [word for name, value in arguments.items() for word in (f"--{name}", value)]
    command = java_command("org.apache.kafka.tools.TransactionalMessageCopier", *words, "--enable-random-aborts")
    with output.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)


def status(output: Path, name: str) -> int | None:
    """A number of the last whole status the copier wrote."""
    for line in reversed(output.read_text().splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if name in found:
            return int(found[name])
    return None


def test_killed_and_started_again(broker: Broker, tmp_path: Path) -> None:
    admin = Admin(broker.bootstrap)
    source, sink = admin.create_topic("copied", 1), admin.create_topic("copies", 1)
    wanted = [str(number) for number in range(MESSAGES)]
    Confluent().produce(broker.bootstrap, source, [Message(key=None, value=value.encode()) for value in wanted])
    rng = random.Random(10)
    for number in range(KILLS):
        output = tmp_path / f"{number}.txt"
        process = copier(broker, source, sink, output)
        eventually(lambda output=output: status(output, "consumed"), timeout_s=END_S)  # type: ignore[misc]
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        process.wait()
    output = tmp_path / "last.txt"
    process = copier(broker, source, sink, output)
    try:
        eventually(lambda: status(output, "remaining") == 0, timeout_s=END_S)
    finally:
        process.kill()
        process.wait()
    client = ConfluentTransactions()
    committed = [value for _, value in client.read(broker.bootstrap, sink, "read_committed")]
    assert committed == wanted
    assert len(client.read(broker.bootstrap, sink, "read_uncommitted")) > MESSAGES
