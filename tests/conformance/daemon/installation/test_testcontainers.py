"""What the Kafka modules of testcontainers do with an image, without containers: their settings, scripts and log lines.

The files of the image are installed in a directory, absolute paths of the scripts lead there, names of hosts become
127.0.0.1, and ports become free ones. Everything else is what the sources of the modules send: testcontainers-java
1.21.3, testcontainers-python 4.15.0, and the repositories of testcontainers-go and testcontainers-node.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.admin import Admin
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess

START_TIMEOUT_S = 30

ZOOKEEPER_STARTED = r"\[KafkaServer id=\d+\] started"
PYTHON_KRAFT_STARTED = r"Kafka Server started"
KRAFT_STARTED = r"Transitioning from RECOVERY to RUNNING"

COMMON = {
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
}
TRANSACTIONS = {
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
}
TWO_LISTENERS = {
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_BROKER_ID": "1",
}
KRAFT = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
KRAFT_OF_93 = {
    **KRAFT,
    "KAFKA_BROKER_ID": "1",
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
}
ZOOKEEPER_BESIDE = """\
echo 'clientPort=2181' > {directory}zookeeper.properties
echo 'dataDir=/var/lib/zookeeper/data' >> {directory}zookeeper.properties
echo 'dataLogDir=/var/lib/zookeeper/log' >> {directory}zookeeper.properties
zookeeper-server-start {directory}zookeeper.properties &
"""
FORMAT = """\
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t "4L6g3nShT" -c /etc/kafka/kafka.properties' >> \
/etc/confluent/docker/configure
"""
ADVERTISE = "export KAFKA_ADVERTISED_LISTENERS={advertised}\n"
TO_OUTSIDE_AND_BROKERS = "PLAINTEXT://localhost:9093,BROKER://c0ffee:9092"


@dataclass(frozen=True)
class Module:
    """What a module sends. `client_port`: the port of the container that clients outside reach."""

    name: str
    settings: Mapping[str, str]
    script_path: str
    script: str
    log_line: str
    client_port: str = "9093"
    shell: str = ""
    """What runs the script, if it is not run by itself."""
    bash: str = field(default="#!/bin/bash\n")


MODULES = (
    *(
        Module(
            f"java-{name}",
            {
                **COMMON,
                **TRANSACTIONS,
                **KRAFT,
                "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
            },
            "/tmp/testcontainers_start.sh",
            ADVERTISE.format(advertised="PLAINTEXT://localhost:9092,BROKER://c0ffee:9093") + f"{run} \n",
            KRAFT_STARTED,
            client_port="9092",
        )
        for name, run in (("apache", "/etc/kafka/docker/run"), ("confluent", "/etc/confluent/docker/run"))
    ),
    Module(
        "java-zookeeper",
        {**COMMON, **TRANSACTIONS, **TWO_LISTENERS, "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"},
        "/testcontainers_start.sh",
        ADVERTISE.format(advertised=TO_OUTSIDE_AND_BROKERS)
        + "echo '' > /etc/confluent/docker/ensure \n"
        + ZOOKEEPER_BESIDE.format(directory="/tmp/")
        + "/etc/confluent/docker/run \n",
        ZOOKEEPER_STARTED,
    ),
    Module(
        "java-kraft",
        {**COMMON, **TRANSACTIONS, **KRAFT_OF_93},
        "/testcontainers_start.sh",
        ADVERTISE.format(advertised=TO_OUTSIDE_AND_BROKERS) + FORMAT + "/etc/confluent/docker/run \n",
        KRAFT_STARTED,
    ),
    *(
        Module(
            f"python-{name}",
            {**COMMON, **settings, "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000"},
            "/tc-start.sh",
            boot
            + ADVERTISE.format(advertised="PLAINTEXT://localhost:9093,BROKER://$(hostname -i):9092")
            + ". /etc/confluent/docker/bash-config\n/etc/confluent/docker/configure\n/etc/confluent/docker/launch\n",
            log_line,
            shell="sh ",
        )
        for name, settings, boot, log_line in (
            (
                "zookeeper",
                TWO_LISTENERS,
                ZOOKEEPER_BESIDE.format(directory="") + "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'\n",
                ZOOKEEPER_STARTED,
            ),
            ("kraft", KRAFT_OF_93, FORMAT, PYTHON_KRAFT_STARTED),
        )
    ),
    Module(
        "go",
        {**COMMON, **TRANSACTIONS, **KRAFT_OF_93, "KAFKA_REST_BOOTSTRAP_SERVERS": "PLAINTEXT://0.0.0.0:9093"},
        "/usr/sbin/testcontainers_start.sh",
        "source /etc/confluent/docker/bash-config\n"
        + ADVERTISE.format(
            advertised=f'"{TO_OUTSIDE_AND_BROKERS}${{EXTRA_ADVERTISED_LISTENERS:+,${{EXTRA_ADVERTISED_LISTENERS}}}}"'
        )
        + "echo Starting Kafka KRaft mode\n"
        + FORMAT.replace('"4L6g3nShT"', '"$(kafka-storage random-uuid)"')
        + "echo '' > /etc/confluent/docker/ensure\n/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        KRAFT_STARTED,
        shell="bash ",
    ),
    Module(
        "node",
        {
            **COMMON,
            **TWO_LISTENERS,
            "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
            "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
            "KAFKA_ADVERTISED_LISTENERS": "BROKER://localhost:9092",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
        },
        "/testcontainers_start.sh",
        ADVERTISE.format(advertised="BROKER://c0ffee:9092,PLAINTEXT://localhost:9093")
        + "echo '' > /etc/confluent/docker/ensure \n"
        + ZOOKEEPER_BESIDE.format(directory="")
        + "/etc/confluent/docker/run \n",
        ZOOKEEPER_STARTED,
    ),
)


class Container:
    """The directory of an image, and from paths, hosts and ports of a container to those here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ports = {port: str(free_port()) for port in ("9092", "9093", "9094")}
        for path in ("tmp", "usr/sbin", "data"):
            (root / path).mkdir(parents=True)
        subprocess.run(["sh", str(REPOSITORY / "container" / "install.sh"), str(root)], check=True)

    def translated(self, text: str) -> str:
        text = re.sub(r"(?<![\w.])(/(?:etc|tmp|usr/sbin)/|/tc-|/testcontainers)", rf"{self.root}\1", text)
        text = re.sub(r"://(?:localhost|c0ffee|0\.0\.0\.0)?:", "://127.0.0.1:", text)
        return re.sub(r":(909[234])\b", lambda found: f":{self.ports[found[1]]}", text)

    def environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        bin_directories = [str(self.root / "usr/local/bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        return {
            **{name: self.translated(text) for name, text in settings.items()},
            "KAFKA_LOG_DIRS": str(self.root / "data"),
            "PATH": os.pathsep.join(bin_directories),
            "PYTHONPATH": str(REPOSITORY / "src"),
        }


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_module_starts_a_broker_and_finds_its_log_line(module: Module, tmp_path: Path) -> None:
    container = Container(tmp_path / "root")
    script = Path(container.translated(module.script_path))
    command = f"while [ ! -f {script} ]; do sleep 0.1; done; {module.shell}{script}"
    process = ManagedProcess(
        ["sh", "-c", command],
        tmp_path / "container.log",
        cwd=container.root,
        env=container.environment(module.settings),
    )
    process.start()
    try:
        copied = script.with_suffix(".copied")
        copied.write_text(module.bash + container.translated(module.script))
        copied.chmod(0o777)
        copied.rename(script)
        process.wait_for_line(module.log_line, START_TIMEOUT_S)
        bootstrap = f"127.0.0.1:{container.ports[module.client_port]}"
        topic = Admin(bootstrap).create_topic("t")
        assert Confluent().produce(bootstrap, topic, [Message(key=b"k", value=b"v")]) == [0]
        assert [one.value for one in Confluent().consume(bootstrap, topic, 1)] == [b"v"]
        assert (container.root / "data" / "t-0").is_dir()
        assert "Traceback" not in process.log_text()
    finally:
        process.kill_group()
