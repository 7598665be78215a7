"""docker-compose.yml as it is committed, but for the published ports, which are free ones."""

from __future__ import annotations

import os
import re
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.admin import Admin
from tests.support.images.docker import compose_command, run
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.ports import free_port
from tests.support.security_page import CLIENT, SERVE, Reader, blocks
from tests.support.waiting import eventually

pytestmark = pytest.mark.images

BUILD_TIMEOUT_S: Final = 1200
START_TIMEOUT_S: Final = 120

ONE_METADATA_SERVICE: Final = """\
services:
  zookeeper:
    image: {image}
    entrypoint: ["odradek", "zookeeper", "--host", "0.0.0.0", "--data", "/tmp/zookeeper"]
    healthcheck:
      test: ["CMD", "python", "-c", "import socket; socket.create_connection(('localhost', 2181))"]
"""
"""Instead of ZooKeeper's image, which comes from a registry."""


class Project:
    """The compose file in a checkout of its own. `ports`: where each published port of the file is on this machine."""

    def __init__(self, checkout: Path) -> None:
        self.directory = checkout
        self.name = f"odradek{uuid.uuid4().hex}"
        text = (checkout / "docker-compose.yml").read_text()
        self.ports = {port: str(free_port()) for port in re.findall(r"127\.0\.0\.1:(\d+):\1", text)}
        for port, here in self.ports.items():
            text = text.replace(f"127.0.0.1:{port}:{port}", f"127.0.0.1:{here}:{port}")
            text = text.replace(f"://localhost:{port}", f"://localhost:{here}")
        self.files = [checkout / f"{self.name}.yml"]
        self.files[0].write_text(text)

    def compose(self, *arguments: str, timeout_s: float = BUILD_TIMEOUT_S) -> str:
        files = [option for path in self.files for option in ("--file", str(path))]
        command = [*compose_command(), *files, "--project-name", self.name, *arguments]
        return run(command, directory=self.directory, timeout_s=timeout_s)

    def is_healthy(self, service: str) -> bool:
        container = self.compose("ps", "-q", service).split()[-1]
        return run(["docker", "inspect", "--format", "{{.State.Health.Status}}", container]).strip() == "healthy"

    def wait_until_healthy(self, *services: str) -> None:
        for service in services:
            eventually(lambda service=service: self.is_healthy(service), timeout_s=START_TIMEOUT_S)  # type: ignore[misc]


@pytest.fixture
def project(broker_image: str, checkout: Path) -> Iterator[Project]:
    """After the image was built: the builds of the services find its layers."""
    one = Project(checkout)
    yield one
    for profile in ("single", "secure", "cluster"):
        one.compose("--profile", profile, "down", "--volumes", "--rmi", "local")


def test_one_node(project: Project) -> None:
    project.compose("--profile", "single", "up", "--detach")
    project.wait_until_healthy("odradek")
    address = f"localhost:{project.ports['9092']}"
    assert Confluent().produce(address, "t", [Message(key=b"k", value=b"v")]) == [0]
    project.compose("--profile", "single", "down")  # the volume stays
    project.compose("--profile", "single", "up", "--detach")
    project.wait_until_healthy("odradek")
    assert [one.value for one in Confluent().consume(address, "t", 1)] == [b"v"]


def test_one_node_with_tls_and_users(project: Project, tmp_path: Path) -> None:
    """The commands of docs/security.md, those for a container in the checkout."""
    reader = Reader(tmp_path)
    reader.port = project.ports["9093"]
    shell = blocks("sh")
    for block in shell[: shell.index(SERVE)]:
        reader.shell(block)
    reader.shell(shell[-1])
    secure = project.directory / "secure"
    (tmp_path / "secure").rename(secure)
    properties = secure / "server.properties"  # the port in the container is that of the compose file
    properties.write_text(properties.read_text().replace(reader.port, "9093"))
    for path in (secure, *secure.iterdir()):
        os.chown(path, 1000, 1000)
    users = shlex.split(blocks("shell")[0].replace("\\\n", " "))
    project.compose(*users[2:])
    project.compose("--profile", "secure", "up", "--detach")
    project.wait_until_healthy("secure")
    for block in shell[shell.index(SERVE) + 1 : CLIENT]:
        reader.shell(block)
    assert reader.shell(shell[CLIENT]) == "0 k hello\n"


def test_three_brokers(project: Project, broker_image: str) -> None:
    """They reach each other and the metadata service by the names of the services."""
    project.files.append(project.directory / f"{project.name}-metadata.yml")
    project.files[1].write_text(ONE_METADATA_SERVICE.format(image=broker_image))
    project.compose("--profile", "cluster", "up", "--detach")
    project.wait_until_healthy("broker-1", "broker-2", "broker-3")
    bootstrap = ",".join(f"localhost:{project.ports[port]}" for port in ("19092", "29092", "39092"))
    admin = Admin(bootstrap)
    eventually(lambda: set(admin.client.list_topics(timeout=10).brokers) == {1, 2, 3}, timeout_s=START_TIMEOUT_S)
    admin.create_topic("everywhere", 3, replicas=-1)
    messages = [Message(key=None, value=b"%d" % i) for i in range(10)]
    assert Confluent().produce(bootstrap, "everywhere", messages) == [*range(10)]
    assert len(Confluent().consume(bootstrap, "everywhere", 10)) == 10
    described = admin.client.list_topics("everywhere", timeout=10).topics["everywhere"]
    assert all(sorted(one.replicas) == [1, 2, 3] for one in described.partitions.values())
