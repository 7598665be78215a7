"""Makes the archive of classes that the JVMs of the tests share.

    python -m tests.support.processes.apache.shared_classes

A ZooKeeper, a broker and its tools run once and record the classes they load; the JVM writes these in the form in which
it maps them into memory. It uses the archive only with the same jars and JDK, and loads from the jars otherwise.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.jvm import QUICK_START, SHARED_CLASSES, java_command
from tests.support.processes.apache.tools import TOOL_CLASSES

TIMEOUT_S = 300


class Training:
    """Runs that leave lists of classes in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = 0

    def noting(self) -> tuple[str, ...]:
        """The options of a JVM that notes its classes."""
        self._runs += 1
        return (*QUICK_START, f"-XX:DumpLoadedClassList={self._directory / f'{self._runs}.classes'}")

    def run(self, tool: str, *arguments: str) -> None:
        command = java_command(TOOL_CLASSES[tool], *arguments, options=self.noting())
        subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S)

    @contextmanager
    def broker(self) -> Iterator[ApacheBroker]:
        """Both end cleanly: only then is the list of their classes complete."""
        zookeeper = ZooKeeper(self._directory / "zookeeper", jvm_options=self.noting())
        zookeeper.start()
        broker = ApacheBroker(self._directory / "broker", zookeeper.new_chroot(), jvm_options=self.noting())
        try:
            broker.start()
            yield broker
            broker.stop()
        finally:
            broker.close()
            zookeeper.stop()

    def classes(self) -> str:
        lists = [path.read_text().splitlines() for path in sorted(self._directory.glob("*.classes"))]
        found = dict.fromkeys(line for lines in lists for line in lines if not line.startswith("#"))
        return "".join(f"{line}\n" for line in found)


def train(training: Training) -> None:
    with training.broker() as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        load = ("--num-records", "100", "--record-size", "10", "--throughput", "-1", "--producer-props")
        training.run("topics", *server, "--create", "--topic", "t")
        training.run("topics", *server, "--describe")
        training.run("configs", *server, "--describe", "--broker", "0", "--all")
        training.run("producer-perf-test", "--topic", "t", *load, f"bootstrap.servers={broker.bootstrap}")
        training.run("console-consumer", *server, "--topic", "t", "--from-beginning", "--max-messages", "100")
        training.run("consumer-groups", *server, "--list")
        training.run("reassign-partitions", *server, "--list")
        training.run("leader-election", *server, "--election-type", "preferred", "--all-topic-partitions")
        (log,) = (broker.log_dir / "t-0").glob("*.log")
        training.run("dump-log", "--deep-iteration", "--files", str(log))


def main() -> None:
    SHARED_CLASSES.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        training = Training(Path(directory))
        train(training)
        classes = Path(directory) / "all"
        classes.write_text(training.classes())
        options = ("-XX:+UseSerialGC", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={SHARED_CLASSES}")
        command = java_command("-Xshare:dump", options=options)
        subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S)


if __name__ == "__main__":
    main()
