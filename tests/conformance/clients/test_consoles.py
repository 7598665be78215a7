"""The calls that kafbat UI and AKHQ make to a cluster, with Apache Kafka's own clients: the answers of Apache Kafka.

`tests/golden/consoles/calls.json` has Apache Kafka's answers, recorded with `--target apache --record`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.broker import Broker
from tests.support.processes.apache.jvm import program_command

pytestmark = pytest.mark.oracle

REPOSITORY: Final = Path(__file__).resolve().parents[3]
PROGRAM: Final = REPOSITORY / "tests" / "support" / "jvm" / "ConsoleCalls.java"
GOLDEN: Final = REPOSITORY / "tests" / "golden" / "consoles" / "calls.json"

OF_THIS_RUN: Final = frozenset({"advertised.listeners", "listeners", "log.dir", "log.dirs"})
"""Configs of a broker whose values differ from run to run."""

OF_ONE_TARGET: Final = frozenset({"zookeeper.connect", "zookeeper.session.timeout.ms"})
"""Configs that are not set for both: a single Odradek broker needs no ZooKeeper."""


def answers_of(broker: Broker) -> dict[str, object]:
    command = program_command(PROGRAM, broker.bootstrap)
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr[-3000:]
    answers: dict[str, object] = dict(json.loads(line) for line in finished.stdout.splitlines())
    configs = answers["describeConfigs of a broker"]
    assert isinstance(configs, dict)
    for name in list(configs):
        if name in OF_THIS_RUN:
            configs[name][0] = "of this run"
        if name in OF_ONE_TARGET or name.startswith("odradek."):
            del configs[name]
    return answers


def test_answers_to_consoles_are_those_of_apache_kafka(
    new_broker: Callable[[], Broker], request: pytest.FixtureRequest, target: str
) -> None:
    answers = answers_of(new_broker())
    if request.config.getoption("--record"):
        assert target == "apache", "golden answers come from Apache Kafka alone"
        GOLDEN.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    expected = json.loads(GOLDEN.read_text())
    assert _differences(answers, expected) == []


def _differences(answers: dict[str, object], expected: dict[str, object]) -> list[str]:
    """One line for each call, and for each entry of an answer that has names, that differs."""
    found = []
    for name in answers.keys() | expected.keys():
        ours, theirs = answers.get(name), expected.get(name)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            found += [f"{name}: {line}" for line in _differences(ours, theirs)]
        elif ours != theirs:
            found.append(f"{name}: {ours!r}, Apache Kafka {theirs!r}")
    return sorted(found)
