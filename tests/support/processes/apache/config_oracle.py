"""Apache Kafka's own check of static settings: one JVM for any number of them, and no broker."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.processes.apache.jvm import program_command

PROGRAM = Path(__file__).parents[2] / "jvm" / "ConfigOracle.java"


def kafka_refuses(settings: Sequence[Mapping[str, str]]) -> list[str | None]:
    """Why Kafka would not start with each of the settings; None for those that it takes."""
    command = program_command(PROGRAM)
    lines = "".join(f"{json.dumps(dict(one))}\n" for one in settings)
    finished = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in finished.stdout.splitlines()]
    assert len(answers) == len(settings), finished.stderr
    return answers
