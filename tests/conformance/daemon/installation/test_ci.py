"""The GitHub action and the examples for CI: their steps and settings run here, without GitHub or containers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from tests.support.admin import Admin
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import STARTED
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

START_TIMEOUT_S = 30
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
IMAGE_FILE = "/etc/odradek/server.properties"
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}


class Runner:
    """Runs a step of the action as a runner of GitHub does; `inputs` are given by the workflow."""

    def __init__(self, directory: Path, **inputs: str) -> None:
        self.output = directory / "output"
        self.path = directory / "path"
        self._inputs = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
        self._variables = {
            "RUNNER_TEMP": str(directory),
            "GITHUB_ACTION_PATH": str(REPOSITORY),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_PATH": str(self.path),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def run(self, step: str) -> subprocess.CompletedProcess[str]:
        variables = {name: self._value(text) for name, text in STEPS[step].get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", STEPS[step]["run"]]
        environment = {**os.environ, **self._variables, **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())

    def _value(self, text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: self._inputs[found[1]], text)


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """Processes to end."""
    started: list[int] = []
    yield started
    for pid in started:
        os.kill(pid, signal.SIGKILL)


def test_the_action_starts_a_broker_and_waits_for_it(tmp_path: Path, pids: list[int]) -> None:
    runner = Runner(tmp_path, port="0", config="num.partitions=3\nlog.retention.ms=1000", **{"as-version": "2.8"})
    finished = runner.run("start")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    outputs = runner.outputs()
    pids.append(int(outputs["pid"]))
    assert set(outputs) == set(ACTION["outputs"])
    assert all(one["value"] == f"${{{{ steps.start.outputs.{name} }}}}" for name, one in ACTION["outputs"].items())
    host, _, port = outputs["bootstrap-servers"].rpartition(":")
    with RawClient(host, int(port)) as client:
        answer = client.call(build(ApiKey.API_VERSIONS), 0)
    assert isinstance(answer, ApiVersionsResponse)
    assert {one.api_key: one.max_version for one in answer.api_keys}[ApiKey.METADATA] == 11
    Admin(outputs["bootstrap-servers"]).create_topic("t", partitions=-1)
    assert (tmp_path / Path(outputs["log"]).parent.name / "data" / "t-2").is_dir()


def test_the_settings_of_the_action_may_name_listeners_and_directories(tmp_path: Path, pids: list[int]) -> None:
    config = f"""listeners=INNER://127.0.0.1:0,OUTER://127.0.0.1:0
        listener.security.protocol.map=INNER:PLAINTEXT,OUTER:PLAINTEXT
        inter.broker.listener.name=INNER
        log.dirs={tmp_path}/one,{tmp_path}/two"""
    runner = Runner(tmp_path, config=config)
    finished = runner.run("start")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    outputs = runner.outputs()
    pids.append(int(outputs["pid"]))
    Admin(outputs["bootstrap-servers"]).create_topic("t", partitions=4)
    assert {path.parent.name for path in tmp_path.glob("*/t-*")} == {"one", "two"}


def test_the_action_starts_a_cluster(tmp_path: Path, pids: list[int]) -> None:
    runner = Runner(tmp_path, brokers="3", port="0", config="default.replication.factor=3")
    finished = runner.run("start")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    outputs = runner.outputs()
    pids.append(int(outputs["pid"]))
    addresses = outputs["bootstrap-servers"].split(",")
    assert len(set(addresses)) == 3
    topic = Admin(addresses[1]).create_topic("t", replicas=-1)
    admin = Admin(addresses[2])  # the controller may tell the broker later than the one that was asked for the topic
    partitions = eventually(lambda: admin.client.list_topics(topic, timeout=START_TIMEOUT_S).topics[topic].partitions)
    assert len(partitions[0].replicas) == 3


@pytest.mark.parametrize("config", ["process.roles=broker", "num.partitions=none"])
def test_the_action_fails_with_the_log_of_a_broker_that_does_not_start(tmp_path: Path, config: str) -> None:
    finished = Runner(tmp_path, port="0", config=config).run("start")
    assert finished.returncode == 1
    assert "::error::the broker has ended" in finished.stdout
    assert config.partition("=")[0] in finished.stdout
    assert not (tmp_path / "output").exists()


def test_the_action_installs_this_repository_and_puts_it_on_the_path(tmp_path: Path) -> None:
    """`pip` is not run: it would fetch packages. What it is told is compared."""
    runner = Runner(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    fake = 'mkdir -p "$3/bin"; printf "#!/bin/sh\\necho \\"\\$@\\" > $3/called" > "$3/bin/pip"; chmod +x "$3/bin/pip"\n'
    (programs / "python3").write_text("#!/bin/sh\n" + fake)
    (programs / "python3").chmod(0o755)
    runner._variables["PATH"] = os.pathsep.join([str(programs), os.environ["PATH"]])
    finished = runner.run("install")
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "odradek" / "called").read_text().split()[-1] == str(REPOSITORY)
    assert runner.path.read_text().strip() == str(tmp_path / "odradek" / "bin")


def test_every_input_is_used_and_every_script_is_bash() -> None:
    text = (REPOSITORY / "action.yml").read_text()
    assert ACTION["runs"]["using"] == "composite"
    for name in ACTION["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in text
    for step in STEPS.values():
        assert step["shell"] == "bash"
        subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
    for script in sorted((REPOSITORY / "container").glob("*.sh")):
        subprocess.run(["bash", "-n", str(script)], check=True)


def services() -> Iterator[tuple[str, dict[str, str], str]]:
    """Of each example: its name, the settings of the broker's container, and the address that its tests use."""
    github = yaml.safe_load((REPOSITORY / "docs/ci/github.yml").read_text())["jobs"]["service"]
    yield "github", github["services"]["kafka"]["env"], github["steps"][-1]["env"]["KAFKA_BOOTSTRAP_SERVERS"]
    gitlab = yaml.safe_load((REPOSITORY / "docs/ci/gitlab.yml").read_text())["test"]
    yield "gitlab", gitlab["services"][0]["variables"], gitlab["variables"]["KAFKA_BOOTSTRAP_SERVERS"]
    compose = yaml.safe_load((REPOSITORY / "docs/ci/compose.yml").read_text())["services"]
    tests: Any = compose["tests"]["environment"]
    yield "compose", compose["kafka"]["environment"], tests["KAFKA_BOOTSTRAP_SERVERS"]


@pytest.mark.parametrize(("name", "settings", "address"), list(services()))
def test_examples_reach_their_broker(name: str, settings: dict[str, str], address: str, tmp_path: Path) -> None:
    """The command and its file are those of the image, with 127.0.0.1 for the name of the container and a free port."""
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert re.findall(r'^CMD \["serve", "(.*)"\]$', dockerfile, re.MULTILINE) == [IMAGE_FILE]
    assert f"COPY container/server.properties {IMAGE_FILE}\n" in dockerfile
    port = str(free_port())
    image = (REPOSITORY / "container" / "server.properties").read_text()
    assert all(image.count(one) == 1 for one in ("/var/lib/odradek/data", ":9092"))
    file = tmp_path / "server.properties"
    file.write_text(image.replace("/var/lib/odradek/data", str(tmp_path / "data")).replace(":9092", f":{port}"))
    assert settings == {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{address}"}
    environment = {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}", "PYTHONPATH": str(REPOSITORY / "src")}
    process = ManagedProcess(
        [sys.executable, "-m", "odradek", "serve", str(file)],
        tmp_path / "broker.log",
        cwd=tmp_path,
        env=environment,
    )
    process.start()
    try:
        process.wait_for_line(STARTED, START_TIMEOUT_S)
        Admin(f"127.0.0.1:{port}").create_topic("t")
        assert process.terminate() == 0
    finally:
        if process.is_running:
            process.kill()
