"""`odradek topics`, `reassign`, `elect-leaders` and `cluster` against three brokers of either kind; they print the same
as Apache's tools.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.apache.tools import Tools
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

COMMAND_TIMEOUT_S = 60
SESSION_TIMEOUT_MS = 30_000
"""A broker that sleeps while commands start is alive all the time."""
Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster(dict.fromkeys((0, 1, 2), target), {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS)})
    cluster.start()
    return cluster


@pytest.fixture
def run(cluster: Cluster) -> Run:
    def run(command: str, *arguments: str, status: int = 0) -> list[str]:
        """The lines that a command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "odradek", command, "--bootstrap-server", cluster.bootstrap, *arguments],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            cwd=REPOSITORY,
        )
        assert done.returncode == status, done
        return [line.rstrip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]

    return run


def plan(path: Path, *partitions: tuple[int, list[int]], topic: str) -> str:
    entries = [{"topic": topic, "partition": index, "replicas": replicas} for index, replicas in partitions]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def test_topics(cluster: Cluster, run: Run, tools: Tools) -> None:
    created = run(
        "topics", "--create", "--topic", "t", "--replica-assignment", "0:1,1:2,2:0", "--config", "retention.ms=86400000"
    )
    assert created == ["Created topic t."]
    assert run("topics", "--create", "--topic", "t", status=1) == [
        "odradek: Error while executing topic command: Topic 't' already exists."
    ]
    run("topics", "--alter", "--topic", "t", "--partitions", "4", "--replica-assignment", "0:1,1:2,2:0,1:0")
    cluster.await_complete("t")
    cluster.await_known("t")
    apaches = tools.run("topics", "--bootstrap-server", cluster.bootstrap, "--describe", "--topic", "t").lines
    assert run("topics", "--describe", "--topic", "t") == apaches
    assert cluster.tree.partition("t", 3).replicas == (1, 0)
    assert "t" in run("topics", "--list")
    run("topics", "--delete", "--topic", "t")
    eventually(lambda: run("topics", "--list"), accept=lambda found: "t" not in found)


def test_reassign(cluster: Cluster, run: Run, tools: Tools, tmp_path: Path) -> None:
    run("topics", "--create", "--topic", "moved", "--replica-assignment", "0:1,1:2")
    topics = tmp_path / "topics.json"
    topics.write_text('{"version": 1, "topics": [{"topic": "moved"}]}')
    generated = run("reassign", "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "0,1,2")
    current, proposed = (json.loads(line) for line in generated if line.startswith("{"))
    assert [entry["replicas"] for entry in current["partitions"]] == [[0, 1], [1, 2]]
    assert [len(entry["replicas"]) for entry in proposed["partitions"]] == [2, 2]
    wanted = plan(tmp_path / "plan.json", (0, [2, 1, 0]), (1, [0]), topic="moved")
    executed = run("reassign", "--execute", "--reassignment-json-file", wanted, "--throttle", "10000000")
    assert executed[-2:] == [
        "The inter-broker throttle limit was set to 10000000 B/s",
        "Successfully started partition reassignments for moved-0,moved-1",
    ]
    assert json.loads(next(line for line in executed if line.startswith("{"))) == current
    throttled = "leader.replication.throttled.replicas"
    assert cluster.tree.get("/config/topics/moved")["config"][throttled] == "0:0,0:1,1:1,1:2"
    eventually(
        lambda: {partition: state.replicas for partition, state in cluster.tree.partitions("moved").items()},
        accept=lambda found: found == {0: (2, 1, 0), 1: (0,)},
    )
    cluster.await_complete("moved")
    eventually(lambda: run("reassign", "--list"), accept=lambda found: found == ["No partition reassignments found."])
    verified = run("reassign", "--verify", "--reassignment-json-file", wanted)
    assert cluster.tree.get("/config/topics/moved")["config"] == {}
    assert cluster.tree.get("/config/brokers/0")["config"] == {}
    apaches = tools.run(
        "reassign-partitions", "--bootstrap-server", cluster.bootstrap, "--verify", "--reassignment-json-file", wanted
    )
    assert verified == apaches.lines


def test_a_reassignment_that_only_adds_is_cancelled(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    run("topics", "--create", "--topic", "kept", "--replica-assignment", "0")
    cluster.await_known("kept")
    cluster.make_controller(0)  # and not the one that sleeps
    cluster.pause(2)  # so that its replica cannot come into sync
    try:
        wanted = plan(tmp_path / "plan.json", (0, [0, 2]), topic="kept")
        run("reassign", "--execute", "--reassignment-json-file", wanted)
        (line,) = run("reassign", "--list")[1:]
        assert re.fullmatch(r"kept-0: replicas: 0,2\. adding: 2\.", line)
        refused = run("reassign", "--execute", "--reassignment-json-file", wanted, status=1)
        assert refused[0].startswith("odradek: Cannot execute because there is an existing partition assignment.")
        cancelled = run("reassign", "--cancel", "--reassignment-json-file", wanted, "--preserve-throttles")
        assert cancelled[0] == "Successfully cancelled partition reassignment for: kept-0"
    finally:
        cluster.resume(2)
    eventually(lambda: cluster.tree.partition("kept", 0).replicas, accept=lambda found: found == (0,))


def test_elections_and_the_state_of_the_cluster(cluster: Cluster, run: Run) -> None:
    run("topics", "--create", "--topic", "led", "--replica-assignment", "0:1,1:0,2:0")
    cluster.await_complete("led")
    cluster.stop(0)
    cluster.await_controller()
    cluster.await_known("led")
    state = run("cluster")
    assert [line for line in state if "Topic: led" in line] == [
        "\tTopic: led\tPartition: 0\tLeader: 1\tReplicas: 0,1\tIsr: 1",
        "\tTopic: led\tPartition: 1\tLeader: 1\tReplicas: 1,0\tIsr: 1",
        "\tTopic: led\tPartition: 2\tLeader: 2\tReplicas: 2,0\tIsr: 2",
    ]
    controller = cluster.tree.controller()
    assert [line for line in state if line.endswith("\tController")] == [
        f"Broker: {controller}\tAddress: {cluster.address(controller or 0)}\tController"
    ]
    assert not any(line.startswith("Broker: 0") for line in state)
    cluster.start(0)
    cluster.await_complete("led")
    assert run("elect-leaders", "--election-type", "preferred", "--topic", "led", "--partition", "0") == [
        "Successfully completed leader election (PREFERRED) for partitions led-0"
    ]
    assert cluster.tree.partition("led", 0).leader == 0
    assert run("elect-leaders", "--election-type", "unclean", "--topic", "led", "--partition", "0") == [
        "Valid replica already elected for partitions led-0"
    ]
    refused = run("elect-leaders", "--election-type", "preferred", "--topic", "nope", "--partition", "0", status=1)
    assert refused[-1] == "odradek: 1 replica(s) could not be elected"
