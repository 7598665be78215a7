"""`odradek perf` and the start of a command beside Apache's tools, each as a client of the same broker.

    python -m tests.benchmarks.parts.bench_data_commands

Prints what each tool says of its records a second, and the processor time and the duration of its process. The
processor time is the better figure on a machine that is busy.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.admin import Admin
from tests.support.processes.apache.jvm import QUICK_START, REPOSITORY, java_command
from tests.support.processes.apache.tools import LOG4J, TOOL_CLASSES
from tests.support.processes.odradek_process import OdradekBroker

RECORDS, SIZE = 200_000, 100
BATCHES = ("batch.size=131072", "linger.ms=5")
TIMEOUT_S = 120


def measured(name: str, command: Sequence[str], rate: str) -> None:
    """Run a tool and print its figures; `rate` finds records a second in its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, cwd=REPOSITORY)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(rate, done.stdout.strip().splitlines()[-1]) if rate else None
    said = "" if found is None else f"{float(found[1]):>12,.0f} records/s"
    print(f"{name:28} {processor:6.2f} s of processor time  {seconds:6.2f} s  {said}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        log4j = Path(directory) / "log4j.properties"
        log4j.write_text(LOG4J)
        broker = OdradekBroker(Path(directory) / "broker", {})
        broker.start()
        try:
            compare(broker.bootstrap, ("-Xmx256m", *QUICK_START, f"-Dlog4j.configuration=file:{log4j}"))
        finally:
            broker.close()


def compare(bootstrap: str, options: Sequence[str]) -> None:
    admin = Admin(bootstrap)
    odradek = [sys.executable, "-m", "odradek"]
    produce = ["--num-records", str(RECORDS), "--record-size", str(SIZE), "--throughput", "-1", "--producer-props"]
    produce += [f"bootstrap.servers={bootstrap}", *BATCHES]
    consume = ["--bootstrap-server", bootstrap, "--messages", str(RECORDS)]
    for name in ("odradek", "apache"):
        topic = admin.create_topic(f"bench-{name}")
        arguments = ["--topic", topic, *produce], ["--topic", topic, *consume]
        commands = [*odradek, "perf", "produce", *arguments[0]], [*odradek, "perf", "consume", *arguments[1]]
        if name == "apache":
            commands = (
                java_command(TOOL_CLASSES["producer-perf-test"], *arguments[0], options=options),
                java_command(TOOL_CLASSES["consumer-perf-test"], *arguments[1], options=options),
            )
        measured(f"perf produce, {name}", commands[0], r"([\d.]+) records/sec")
        measured(f"perf consume, {name}", commands[1], r"([\d.]+)$")
    last = ["--bootstrap-server", bootstrap, "--topic", "bench-odradek", "--from-beginning", "--max-messages", "1"]
    measured("one record, odradek", [*odradek, "consume", *last], "")
    measured("one record, apache", java_command(TOOL_CLASSES["console-consumer"], *last, options=options), "")


if __name__ == "__main__":
    main()
