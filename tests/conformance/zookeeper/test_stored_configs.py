"""`odradek configs --zookeeper` beside Apache's kafka-configs, before any broker has started; brokers that use it."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from odradek.broker.config.password_encoder import PasswordEncoder
from odradek.controller.znodes import znodes
from odradek.storage.config.config_def import Password
from tests.conformance.cluster.commands.test_commands_beside_tools import ours
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.apache.tool_runs import run_in_one_jvm
from tests.support.processes.apache.tools import TOOL_CLASSES
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port

SECRETS = re.compile(r"salt=[^,]*,stored_key=[^,]*,server_key=[^,]*,")
PASSWORD = "listener.name.x.ssl.keystore.password"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.oracle
def test_each_tool_reads_what_the_other_wrote(zookeeper: ZooKeeper) -> None:
    connect = zookeeper.new_chroot()
    at = ("--zookeeper", connect)
    users = [("--alter", "--entity-type", "users", "--entity-name", name) for name in ("ours", "theirs")]
    brokers = [("--alter", "--entity-type", "brokers", "--entity-name", name) for name in ("1", "2")]
    credential = ("--add-config", "SCRAM-SHA-256=[iterations=8192,password=open],SCRAM-SHA-512=[password=sesame]")
    configs = ("--add-config", f"{PASSWORD}=open,password.encoder.secret=s,log.cleaner.threads=2")
    describe = [
        ("--describe", "--entity-type", "users"),
        ("--describe", "--entity-type", "users", "--entity-name", "ours"),
        ("--describe", "--entity-type", "brokers", "--entity-name", "1"),
        ("--describe", "--entity-type", "brokers", "--entity-default"),
        ("--describe", "--entity-type", "topics"),
        ("--alter", "--entity-type", "users", "--entity-name", "ours", "--delete-config", "SCRAM-SHA-1"),
        ("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", f"{PASSWORD}=open"),
    ]
    first = [ours("configs", *at, *users[0], *credential), ours("configs", *at, *brokers[0], *configs)]
    tool = TOOL_CLASSES["configs"]
    theirs = run_in_one_jvm(
        [
            [tool, *at, *users[1], *credential],
            [tool, *at, *brokers[1], *configs],
            *([tool, *at, *run] for run in describe),
        ]
    )
    assert [run.stdout.replace("ours", "theirs").replace("'1'", "'2'") for run in first] == [
        run.stdout for run in theirs[:2]
    ]
    for arguments, expected in zip(describe, theirs[2:], strict=True):
        printed = ours("configs", *at, *arguments)
        assert (printed.status, pairs(printed.stdout)) == (expected.status, pairs(expected.stdout)), arguments
        if expected.status:  # Apache's message goes on with what should be added, passwords included
            message = expected.stderr.splitlines()[0].removeprefix("requirement failed: ")
            assert printed.stderr.removeprefix("odradek: ")[:60] == message[:60]
    with closing(KazooClient(connect)) as client:
        client.start()
        for broker in ("1", "2"):
            stored = znodes.decode_entity_config(client.get(f"/config/brokers/{broker}")[0])
            assert PasswordEncoder(secret=Password("s")).decode(stored.pop(PASSWORD)) == "open"
            assert stored == {"log.cleaner.threads": "2"}
        client.stop()


def pairs(text: str) -> list[set[str]]:
    """The configs of each line in any order, without their secrets."""
    shown = re.sub(rf"{PASSWORD}=\S*?(?=,log|\n)", PASSWORD, SECRETS.sub("", text))
    return sorted(map(set, (re.split(",| are ", line) for line in shown.splitlines())), key=sorted)


@pytest.mark.parametrize("where", ["zookeeper", "embedded"])
def test_a_broker_starts_with_its_users(request: pytest.FixtureRequest, tmp_path: Path, where: str) -> None:
    settings = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{LOGIN};",
    }
    plain_port, port = free_port(), free_port()
    settings["listeners"] = f"PLAINTEXT://127.0.0.1:{plain_port},SASL_PLAINTEXT://127.0.0.1:{port}"
    at = ("--metadata", str(tmp_path / "logs"))
    if where == "zookeeper":
        settings["zookeeper.connect"] = request.getfixturevalue("zookeeper").new_chroot()
        at = ("--zookeeper", settings["zookeeper.connect"])
    (tmp_path / "logs").mkdir()
    added = ours("configs", *at, "--alter", "--user", "admin", "--add-config", "SCRAM-SHA-512=[password=open-sesame]")
    assert (added.status, added.stderr) == (0, "")
    broker = OdradekBroker(tmp_path, settings, plain_port)
    broker.start()
    try:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "admin"}
        address = {"bootstrap.servers": f"127.0.0.1:{port}"}
        admin = AdminClient({**address, **login, "sasl.password": "open-sesame"})
        assert [*admin.list_topics(timeout=10).brokers] == [0]
        broker.stop()
        assert "open-sesame" not in broker.log_text()
    finally:
        broker.close()
