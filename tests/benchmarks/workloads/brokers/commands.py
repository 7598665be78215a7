"""Start and end of the commands beside Apache's tools of the same kind, each with a node of Odradek.

A JVM gets the options of Apache's kafka-run-class.sh; the shell script before it is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import ODRADEK, Setup, Side, Workload
from tests.benchmarks.contenders import Contenders, create_topic
from tests.support.processes.apache.jvm import java_command
from tests.support.processes.apache.tools import TOOL_CLASSES

TOPIC: Final = "commands"
JAVA: Final = "Apache's tool"
RUN_CLASS: Final = (
    *("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)


SERVERS: Final = "{servers}"


class Pair(NamedTuple):
    """A command and Apache's tool, with their arguments. Both get --bootstrap-server, too, unless `SERVERS` has a place
    in them.
    """

    ours: tuple[str, ...]
    tool: str
    theirs: tuple[str, ...]
    stdin: bytes = b""


_ONE_RECORD: Final = (
    *("--topic", TOPIC, "--num-records", "1", "--record-size", "10", "--throughput", "-1"),
    *("--producer-props", f"bootstrap.servers={SERVERS}"),
)

PAIRS: Final = {
    "topics": Pair(("topics", "--list"), "topics", ("--list",)),
    "groups": Pair(("groups", "--list"), "consumer-groups", ("--list",)),
    "configs": Pair(
        ("configs", "--describe", "--entity-type", "topics", "--entity-name", TOPIC),
        "configs",
        ("--describe", "--entity-type", "topics", "--entity-name", TOPIC),
    ),
    "get-offsets": Pair(("get-offsets", "--topic", TOPIC), "get-offsets", ("--topic", TOPIC)),
    "produce": Pair(("produce", "-t", TOPIC), "console-producer", ("--topic", TOPIC), b"a record\n"),
    "consume": Pair(
        ("consume", "-t", TOPIC, "-o", "beginning", "-c", "1"),
        "console-consumer",
        ("--topic", TOPIC, "--from-beginning", "--max-messages", "1"),
    ),
}

MORE_PAIRS: Final = {
    "topics-describe": Pair(("topics", "--describe"), "topics", ("--describe",)),
    "groups-describe": Pair(
        ("groups", "--describe", "--all-groups"), "consumer-groups", ("--describe", "--all-groups")
    ),
    "log-dirs": Pair(("log-dirs", "--describe"), "log-dirs", ("--describe",)),
    "api-versions": Pair(("api-versions",), "broker-api-versions", ()),
    "transactions": Pair(("transactions", "list"), "transactions", ("list",)),
    "reassign": Pair(("reassign", "--list"), "reassign-partitions", ("--list",)),
    "perf-produce": Pair(("perf", "produce", *_ONE_RECORD), "producer-perf-test", _ONE_RECORD),
    "perf-consume": Pair(
        ("perf", "consume", "-b", SERVERS, "--topic", TOPIC, "--messages", "1"),
        "consumer-perf-test",
        ("--topic", TOPIC, "--messages", "1"),
    ),
}
"""Only with --full."""


@contextmanager
def _odradek(contenders: Contenders, label: str) -> Iterator[Side]:
    broker = contenders.new(ODRADEK, "commands")
    try:
        broker.start()
        side = Side(label, contenders, [broker])
        create_topic(broker, TOPIC, 1)
        drive(PAIRS["produce"], side)  # for the commands that read
        yield side
    finally:
        broker.close()


def drive(pair: Pair, side: Side) -> Figures:
    if side.label == JAVA:
        arguments = _with_servers(pair.theirs, side.bootstrap)
        command = java_command(TOOL_CLASSES[pair.tool], *arguments, options=RUN_CLASS)
    else:
        odradek = str(Path(sys.executable).with_name("odradek"))
        command = [odradek, pair.ours[0], *_with_servers(pair.ours[1:], side.bootstrap)]
    return time_of(command, pair.stdin)


def _with_servers(arguments: Sequence[str], servers: str) -> list[str]:
    placed = [argument.replace(SERVERS, servers) for argument in arguments]
    return placed if placed != list(arguments) else ["--bootstrap-server", servers, *placed]


def time_of(command: Sequence[str], stdin: bytes) -> Figures:
    """`stdin`: at most what a pipe holds."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return {
        ("start to end", "ms"): elapsed_s * 1000,
        ("processor time", "CPU ms"): (usage.ru_utime + usage.ru_stime) * 1000,
    }


SETUP: Final = Setup("the client is a new process, the broker Odradek", _odradek, (ODRADEK, JAVA))

WORKLOADS: Final = tuple(
    Workload(
        name=f"commands/{name}",
        description=f"`odradek {' '.join(pair.ours)}` beside kafka-{pair.tool}",
        setup=SETUP,
        drive=partial(drive, pair),
        warm_up=1,  # it fills the cache of compiled modules
        main=name in PAIRS,
    )
    for name, pair in {**PAIRS, **MORE_PAIRS}.items()
)
