"""Start and end of the commands beside Apache's tools of the same kind, on the same broker.

A JVM gets the options of Apache's kafka-run-class.sh; the shell script before it is not counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.contenders import Contenders
from tests.benchmarks.measure import Table
from tests.support.processes.apache.jvm import java_command
from tests.support.processes.apache.tools import TOOL_CLASSES

OUR_ROUNDS = 10
THEIR_ROUNDS = 3
TOPIC = "commands"
RUN_CLASS = (
    *("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)


class Pair(NamedTuple):
    """A command and Apache's tool, with their arguments; both get --bootstrap-server, too."""

    ours: tuple[str, ...]
    tool: str
    theirs: tuple[str, ...]
    stdin: bytes = b""


PAIRS = (
    Pair(("topics", "--list"), "topics", ("--list",)),
    Pair(("groups", "--list"), "consumer-groups", ("--list",)),
    Pair(
        ("configs", "--describe", "--entity-type", "topics", "--entity-name", TOPIC),
        "configs",
        ("--describe", "--entity-type", "topics", "--entity-name", TOPIC),
    ),
    Pair(("get-offsets", "--topic", TOPIC), "get-offsets", ("--topic", TOPIC)),
    Pair(("produce", "-t", TOPIC), "console-producer", ("--topic", TOPIC), b"a record\n"),
    Pair(
        ("consume", "-t", TOPIC, "-o", "beginning", "-c", "1"),
        "console-consumer",
        ("--topic", TOPIC, "--from-beginning", "--max-messages", "1"),
    ),
)


def run(contenders: Contenders) -> None:
    broker = contenders.new_odradek("commands")
    broker.launch()
    try:
        servers = ("--bootstrap-server", f"{broker.host}:{broker.port}")
        odradek = str(Path(sys.executable).with_name("odradek"))
        await_success([odradek, "topics", *servers, "--create", "--topic", TOPIC])
        print(f"One command, start to end (medians of {OUR_ROUNDS} and {THEIR_ROUNDS} runs)")
        for pair in PAIRS:
            ours = [odradek, pair.ours[0], *servers, *pair.ours[1:]]
            theirs = java_command(TOOL_CLASSES[pair.tool], *servers, *pair.theirs, options=RUN_CLASS)
            time_of(ours, pair.stdin)  # fills the cache of compiled modules
            mine = [time_of(ours, pair.stdin) for _ in range(OUR_ROUNDS)]
            apaches = [time_of(theirs, pair.stdin) for _ in range(THEIR_ROUNDS)]
            table = Table(f"odradek {' '.join(pair.ours)} beside kafka-{pair.tool}")
            for column, name in enumerate(("start to end", "processor time")):
                table.row(name, "ms", *(statistics.median(found[column] for found in runs) for runs in (mine, apaches)))
    finally:
        broker.close()


def await_success(command: Sequence[str]) -> None:
    while subprocess.run(command, capture_output=True, check=False).returncode:
        time.sleep(0.05)


def time_of(command: Sequence[str], stdin: bytes) -> tuple[float, float]:
    """Milliseconds from start to end, and of processor time. `stdin`: at most what a pipe holds."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return elapsed_s * 1000, (usage.ru_utime + usage.ru_stime) * 1000
