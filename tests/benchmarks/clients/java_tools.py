"""Apache's Java tools as clients: kafka-producer-perf-test and kafka-consumer-perf-test.

A tool counts from its first record on, not the start of its JVM. Its compilers work during the measurement, so its
throughput is that of a client that has just been started.
"""

from __future__ import annotations

import re
import subprocess
from typing import Final

from tests.support.processes.apache.jvm import REPOSITORY, java_command
from tests.support.processes.apache.tools import TOOL_CLASSES

TIMEOUT_S: Final = 180
OPTIONS: Final = ("-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


def produce(bootstrap: str, topic: str, records: int, record_bytes: int, **settings: str | int) -> float:
    """Records a second. `settings` of the producer, with an underscore in place of each dot."""
    properties = {"bootstrap.servers": bootstrap}
    properties.update({key.replace("_", "."): str(value) for key, value in settings.items()})
    printed = _run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes), "--throughput", "-1"),
        *("--producer-props", *(f"{key}={value}" for key, value in properties.items())),
    )
    last = printed.strip().splitlines()[-1]
    found = re.match(r"(\d+) records sent, ([\d.]+) records/sec", last)
    assert found is not None, printed
    assert int(found[1]) == records, last
    return float(found[2])


def consume(bootstrap: str, topic: str, records: int) -> float:
    """Records a second, from the first fetch on: without the time in which the group is joined."""
    printed = _run(
        "consumer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--messages", str(records)),
        *("--hide-header", "--timeout", str(TIMEOUT_S * 1000)),
    )
    fields = printed.strip().splitlines()[-1].split(", ")
    assert int(fields[4]) >= records, printed
    return float(fields[-1])


def _run(tool: str, *arguments: str) -> str:
    command = java_command(TOOL_CLASSES[tool], *arguments, options=OPTIONS)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
