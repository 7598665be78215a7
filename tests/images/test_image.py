"""The image of a broker: what is in it, and a container of it from its start to its end."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.support.admin import Admin
from tests.support.images.docker import docker
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.images

DATA: Final = "/var/lib/odradek/data"
STARTED: Final = "[KafkaServer id=0] started"
START_TIMEOUT_S: Final = 60
PACKAGES: Final = ("broker", "controller", "coordinator", "protocol", "storage", "testing", "timer")
ADDED_BYTES_MAX: Final = 80_000_000
"""What the image may have beside its base image; 55 MB were measured."""

Run = Callable[..., str]


@pytest.fixture
def volume() -> Iterator[str]:
    name = f"odradek-{uuid.uuid4().hex}"
    docker("volume", "create", name)
    yield name
    docker("volume", "rm", name)


@pytest.fixture
def run(broker_image: str, volume: str) -> Iterator[Run]:
    """Starts a container with the volume and waits until it serves. Arguments: options of `docker run`, the command."""
    names: list[str] = []

    def start(options: list[str], command: list[str]) -> str:
        names.append(f"odradek-{uuid.uuid4().hex}")
        mounted = ["--volume", f"{volume}:{DATA}"]
        docker("run", "--detach", "--name", names[-1], *mounted, *options, broker_image, *command)
        eventually(lambda: STARTED in docker("logs", names[-1]), timeout_s=START_TIMEOUT_S)
        return names[-1]

    yield start
    for name in names:
        docker("rm", "--force", name)


def published(port: int) -> list[str]:
    advertised = f"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{port}"
    return ["--publish", f"127.0.0.1:{port}:9092", "--env", advertised]


def state(container: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(docker("inspect", "--format", "{{json .State}}", container))
    return found


def shell(image: str, script: str) -> list[str]:
    """The lines that a script prints in a container, as the user of the image."""
    return docker("run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", script).splitlines()


def test_it_has_the_package_and_nothing_else_of_the_repository(broker_image: str) -> None:
    place = shell(broker_image, "cd /; python -c 'import odradek; print(odradek.__path__[0])'")[-1]
    assert "site-packages" in place
    tracked = subprocess.run(
        ["git", "ls-files", "--", *PACKAGES], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    sources = {line for line in tracked.stdout.splitlines() if line.endswith(".py")}
    found = {line.removeprefix("./") for line in shell(broker_image, f"cd {place}; find . -name '*.py'")}
    assert found == sources | {"__init__.py", "__main__.py"}
    names = [".git", "spark_jobs", "pyproject.toml", "Dockerfile", ".venv", ".cache"]
    of_repository = " -o ".join(f"-name {name}" for name in names)
    beside = shell(broker_image, f"find / -xdev {of_repository} 2>/dev/null || true")
    assert beside == []


def test_it_adds_little_to_its_base_image(broker_image: str) -> None:
    sizes = docker("history", "--human=false", "--format", "{{.Size}} {{.Comment}} {{.CreatedBy}}", broker_image)
    lines = sizes.splitlines()
    own = lines[: next(i for i, line in enumerate(lines) if "compileall" in line) + 1]
    assert 0 < sum(int(line.split()[0]) for line in own) < ADDED_BYTES_MAX


def test_its_user_is_not_root_and_writes_its_data_only(broker_image: str) -> None:
    assert shell(broker_image, f"id -u; pwd; touch {DATA}/x && echo written") == ["1000", "/var/lib/odradek", "written"]
    writable = shell(broker_image, "find /usr /etc /opt -xdev -writable -not -type l 2>/dev/null || true")
    assert writable == []


def test_no_start_compiles_python(broker_image: str) -> None:
    """A source that is compiled is named without quotes, bytecode that is read with quotes."""
    printed = shell(
        broker_image, "python -v -c 'import odradek.broker.server, odradek.broker.health, asyncio, ssl' 2>&1"
    )
    assert any(re.match(r"# code object from '.*\.pyc'", line) for line in printed)
    assert [line for line in printed if re.match(r"# code object from /", line)] == []


def test_records_survive_a_stop_and_a_start(run: Run) -> None:
    port = free_port()
    address = f"localhost:{port}"
    first = run([*published(port), "--env", "KAFKA_NUM_PARTITIONS=3"], [])
    eventually(lambda: state(first)["Health"]["Status"] == "healthy", timeout_s=START_TIMEOUT_S)
    docker("exec", first, "odradek", "health", "127.0.0.1:9092")
    assert Confluent().produce(address, "t", [Message(key=b"k", value=b"v%d" % i) for i in range(10)]) == [*range(10)]
    assert Admin(address).topics()["t"] == 3
    docker("stop", first)
    assert state(first)["ExitCode"] == 0
    assert "[KafkaServer id=0] shut down completed" in docker("logs", first)

    # No capability, no writable file but those of the volume, settings as arguments.
    narrow = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    arguments = ["serve", "--host", "0.0.0.0", "--data", DATA, "--override", "num.partitions=2"]
    second = run([*published(port), *narrow], arguments)
    assert "unclean" not in docker("logs", second).lower()
    assert [one.value for one in Confluent().consume(address, "t", 10)] == [b"v%d" % i for i in range(10)]
    assert Confluent().produce(address, "u", [Message(key=b"k", value=b"v")]) == [0]
    assert Admin(address).topics()["u"] == 2
    docker("stop", second)
    assert state(second)["ExitCode"] == 0


def test_without_settings_clients_of_this_machine_reach_it(run: Run) -> None:
    """They are told the address of the container."""
    port = free_port()
    run(["--publish", f"127.0.0.1:{port}:9092"], [])
    assert Confluent().produce(f"localhost:{port}", "t", [Message(key=b"k", value=b"v")]) == [0]


def test_a_setting_that_is_wrong_ends_it_with_one_line(broker_image: str) -> None:
    done = subprocess.run(
        ["docker", "run", "--rm", "--env", "KAFKA_NUM_PARTITIONS=none", broker_image],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "num.partitions" in done.stderr
    assert "Traceback" not in done.stderr
