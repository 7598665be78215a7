"""Apache Kafka 3.9 in ZooKeeper mode, the oracle of the tests.

One ZooKeeper serves every Apache broker of a test session; each broker gets a chroot of its own in it, which is empty
like a new ZooKeeper.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.broker import FAST_SETTINGS
from tests.support.processes.apache.jvm import QUICK_START, java_command
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.processes.zookeeper_process import SETTINGS, ZooKeeperProcess
from tests.support.waiting import eventually

METADATA = 3
ZOOKEEPER_SERVES = "ZooKeeper audit is disabled"
"""The last line of a start. From 'binding to port' until then ZooKeeper accepts connections and closes them."""

SESSION_TIMEOUT_S = int(FAST_SETTINGS["zookeeper.session.timeout.ms"]) / 1000

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
SIGTERM_STATUS = 143  # a JVM that ran its shutdown hooks after SIGTERM: 128 + 15

FRUGAL = ("-Xmx512m", *QUICK_START)
"""For tests: a quick start and little memory. `IN_EARNEST` has its usual settings."""

IN_EARNEST = ("-Xmx1g", "-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")

LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.org.apache.zookeeper=WARN
"""


class ZooKeeper(ZooKeeperProcess):
    """One standalone ZooKeeper 3.8 on a free port."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = (),
        host: str = "127.0.0.1",
        prefix: Sequence[str] = (),
    ) -> None:
        """`prefix`: a command that runs the server's on `host`.

        Unless `settings` say so, the server does not wait for its disk: all sessions would expire where other processes
        keep the disk busy for some seconds, and no test cuts its power.
        """
        super().__init__()
        directory.mkdir(parents=True, exist_ok=True)
        self.host = host
        self.port = free_port()
        config = directory / "zoo.cfg"
        lines = {
            **SETTINGS,
            "dataDir": str(directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": host,
            "admin.enableServer": "false",
            "forceSync": "no",
            **(settings or {}),
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        log4j = directory / "log4j.properties"
        log4j.write_text(LOG4J.replace("log4j.logger.org.apache.zookeeper=WARN\n", ""))
        command = java_command(
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(config),
            options=(
                *("-Xmx256m", *QUICK_START, f"-Dlog4j.configuration=file:{log4j}"),
                *jvm_options,
            ),
        )
        self._process = ManagedProcess([*prefix, *command], directory / "zookeeper.log", cwd=directory)

    def start(self) -> None:
        self._process.start()
        self._process.wait_for_line(ZOOKEEPER_SERVES, START_TIMEOUT_S)

    def stop(self) -> None:
        if self._process.is_running:
            self._process.terminate()

    def log_text(self) -> str:
        return self._process.log_text()


class ApacheBroker:
    """One Apache Kafka broker, `kafka.Kafka`, registered in a ZooKeeper."""

    target = "apache"

    def __init__(
        self,
        directory: Path,
        zookeeper_connect: str,
        settings: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = FRUGAL,
        port: int = 0,
        host: str = "127.0.0.1",
        prefix: Sequence[str] = (),
    ) -> None:
        """`prefix`: a command that runs the broker's on `host`."""
        directory.mkdir(parents=True, exist_ok=True)
        self.host = host
        self.port = port or free_port()
        self.log_dir = directory / "logs"
        properties = {
            **FAST_SETTINGS,
            "listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "zookeeper.connect": zookeeper_connect,
            "log.dirs": str(self.log_dir),
            **(settings or {}),
        }
        server_properties = directory / "server.properties"
        server_properties.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        log4j = directory / "log4j.properties"
        log4j.write_text(LOG4J)
        command = java_command(
            "kafka.Kafka",
            str(server_properties),
            options=(*jvm_options, f"-Dlog4j.configuration=file:{log4j}"),
        )
        self._process = ManagedProcess([*prefix, *command], directory / "kafka.log", cwd=directory)

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        self._process.start()

    def wait_for_line(self, pattern: str) -> None:
        """Wait until the process has printed something that the pattern matches."""
        self._process.wait_for_line(pattern, START_TIMEOUT_S)

    def start(self) -> None:
        self.launch()
        self.wait_for_line(r"\[KafkaServer id=\d+\] started")
        eventually(self._has_metadata, timeout_s=START_TIMEOUT_S)

    def _has_metadata(self) -> bool:
        """Whether Metadata names a broker and a controller: Apache prints "started" a little before that."""
        frame = struct.pack(">hhihi", METADATA, 1, 1, -1, 0)  # version 1, no client id, no topics
        with socket.create_connection((self.host, self.port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            with connection.makefile("rb") as answers:
                (size,) = struct.unpack(">i", answers.read(4))
                body = answers.read(size)
        (brokers,) = struct.unpack_from(">i", body, 4)
        (controller,) = struct.unpack_from(">i", body, len(body) - 8)  # followed by an empty array of topics
        return brokers > 0 and controller >= 0

    def stop(self) -> None:
        status = self._process.terminate(STOP_TIMEOUT_S)
        if status not in (0, SIGTERM_STATUS):
            raise self._process.error(f"ended with status {status}")

    def kill(self) -> None:
        self._process.kill()
        # Its ephemeral nodes outlive it; a broker that starts while they are there refuses to.
        time.sleep(SESSION_TIMEOUT_S)

    def close(self) -> None:
        """Kill the process if it still runs: its data is not needed any more."""
        if self._process.is_running:
            self._process.kill()

    @property
    def log_bytes(self) -> int:
        return self._process.log_bytes

    def log_text(self, start: int = 0) -> str:
        return self._process.log_text(start)
