"""Start and end of a command: `odradek groups --list` beside kafka-consumer-groups, on the same broker.

The JVM gets the options of Apache's kafka-run-class.sh; the shell script before it is not counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.contenders import Contenders
from tests.benchmarks.measure import Table
from tests.support.processes.jvm import java_command
from tests.support.processes.tools import TOOL_CLASSES

OUR_ROUNDS = 20
THEIR_ROUNDS = 5
RUN_CLASS = (
    *("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)


def run(contenders: Contenders) -> None:
    broker = contenders.new_odradek("commands")
    broker.launch()
    try:
        arguments = ("--bootstrap-server", f"{broker.host}:{broker.port}", "--list")
        ours = [str(Path(sys.executable).with_name("odradek")), "groups", *arguments]
        theirs = java_command(TOOL_CLASSES["consumer-groups"], *arguments, options=RUN_CLASS)
        await_answer(ours)
        mine = [time_of(ours) for _ in range(OUR_ROUNDS)]
        apaches = [time_of(theirs) for _ in range(THEIR_ROUNDS)]
    finally:
        broker.close()
    table = Table(f"List the groups of a broker: one command (medians of {OUR_ROUNDS} and {THEIR_ROUNDS} runs)")
    for column, name in enumerate(("start to end", "processor time")):
        table.row(name, "ms", *(statistics.median(found[column] for found in runs) for runs in (mine, apaches)))


def await_answer(command: Sequence[str]) -> None:
    """Also fills the cache of compiled modules."""
    while subprocess.run(command, capture_output=True, check=False).returncode:
        time.sleep(0.05)


def time_of(command: Sequence[str]) -> tuple[float, float]:
    """Milliseconds from start to end, and of processor time."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return elapsed_s * 1000, (usage.ru_utime + usage.ru_stime) * 1000
