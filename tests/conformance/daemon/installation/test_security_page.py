"""The commands of docs/security.md as a reader runs them, on free ports."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import STARTED
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.security_page import CLIENT, PAGE_PORT, SERVE, Reader, blocks

START_TIMEOUT_S = 20
DATA = "/var/lib/odradek/data"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Has run all blocks but that of the client, and the broker of the page runs."""
    found = Reader(tmp_path_factory.mktemp("secure"))
    shell = blocks("sh")
    start = shell.index(SERVE)
    for block in shell[:start]:
        found.shell(block)
    with serving(found, SERVE.split(), found.directory):
        for block in shell[start + 1 : CLIENT]:
            found.shell(block)
        yield found


@contextmanager
def serving(reader: Reader, command: list[str], directory: Path) -> Iterator[None]:
    """A broker that runs `command` there, stops cleanly and logs no password."""
    log = reader.directory.with_name(f"{reader.directory.name}-{directory.name}.log")
    broker = ManagedProcess([sys.executable, "-m", *command], log, cwd=directory, env=reader.environment)
    broker.start()
    broker.wait_for_line(STARTED, START_TIMEOUT_S)
    yield
    assert broker.terminate() == 0
    assert "-secret" not in broker.log_text()


def test_the_client_of_the_page_prints_its_record(reader: Reader) -> None:
    assert reader.shell(blocks("sh")[CLIENT]) == "0 k hello\n"
    program, *_ = blocks("python")
    assert reader.python(program) == "0 b'k' b'hello'\n"


def test_what_the_page_says_is_refused(reader: Reader) -> None:
    listed = f"odradek topics --list --exclude-internal --bootstrap-server localhost:{reader.port} --command-config"
    create = f"odradek topics --create --topic other --bootstrap-server localhost:{reader.port} --command-config"
    reader.shell(f"{create} admin.properties")
    assert reader.shell(f"{listed} admin.properties").split() == ["orders", "other"]
    assert reader.shell(f"{listed} alice.properties").split() == ["orders"]
    produced = reader.run(
        ["sh", "-c", f"echo x | odradek produce -t other -b localhost:{reader.port} --command-config alice.properties"]
    )
    assert produced.returncode != 0
    assert "topic other: Topic authorization failed." in produced.stderr
    stranger = reader.run(["sh", "-c", f"sed s/alice-/wrong-/ alice.properties > wrong; {listed} wrong"])
    assert stranger.returncode != 0
    assert "authentication" in stranger.stderr.lower()


def test_files_with_secrets_are_private(reader: Reader) -> None:
    modes = {path.name: path.stat().st_mode & 0o077 for path in reader.directory.iterdir() if path.is_file()}
    assert {name: modes[name] for name in ("broker.pem", "admin.properties", "server.properties")} == {
        "broker.pem": 0,
        "admin.properties": 0,
        "server.properties": 0,
    }


def test_the_service_of_the_compose_file(reader: Reader, tmp_path: Path) -> None:
    """Without a container: its command and its health check, in its folder, with its data elsewhere."""
    service = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]["secure"]
    reader.shell(blocks("sh")[-1])
    port = str(free_port())

    def here(words: list[str]) -> list[str]:
        changes = {DATA: str(tmp_path), PAGE_PORT: port, "0.0.0.0": "127.0.0.1"}
        for container, outside in changes.items():
            words = [word.replace(container, outside) for word in words]
        return words

    users = shlex.split(blocks("shell")[0].replace("\\\n", " "))
    created = reader.run(["odradek", *here(users[users.index("secure") + 1 :])])
    assert created.returncode == 0, created.stderr
    folder = reader.directory / "secure"
    assert f"./{folder.name}:{service['working_dir']}:ro" in service["volumes"]
    with serving(reader, ["odradek", *here(service["command"])], folder):
        program, *check = here(service["healthcheck"]["test"])
        assert program == "CMD"
        done = subprocess.run(check, cwd=folder, env=reader.environment, timeout=60, check=False)
        assert done.returncode == 0
        command = f"odradek topics --list --bootstrap-server localhost:{port} --command-config admin.properties"
        assert reader.shell(command) == ""
