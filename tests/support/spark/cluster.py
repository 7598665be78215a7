"""A standalone cluster of Spark: one master and two workers, processes of their own, and jobs by `spark-submit`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark

from spark_jobs.common.connector import connector_options
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.spark.jvm import FRUGAL, short_lived

SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
START_LIMIT_S = 60
"""Of processor time."""


class SparkCluster:
    """`start`, then `submit`, then `close`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self._options = short_lived()
        self._environment = {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": "",  # the executors have the code that is sent to them
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": self._options,
            "SPARK_LAUNCHER_OPTS": FRUGAL,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        self._daemons: list[ManagedProcess] = []

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._start(
            "master", "Master", "--port", str(self._port), said="I have been elected leader|Starting Spark master"
        )
        for number in range(WORKERS):
            folder = self._directory / f"worker-{number}"
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder), self.master]
            self._start(f"worker-{number}", "Worker", *options, said="Successfully registered with master")

    def submit(self, archive: Path, job: str, arguments: Sequence[str], status: int = 0) -> str:
        """Run a job to its end, which has that exit status. Returns what it printed."""
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.master, "--py-files", str(archive)]
        command += ["--jars", connector_options()["spark.jars"], "--executor-memory", "512m"]
        command += ["--conf", f"spark.driver.extraJavaOptions={self._options}", "--conf", "spark.ui.enabled=false"]
        command += ["--conf", f"spark.executor.extraJavaOptions={self._options}"]
        command += ["--conf", f"spark.sql.shuffle.partitions={WORKERS}"]
        command += [str(REPOSITORY / "spark_jobs" / f"{job}.py"), *arguments]
        process = ManagedProcess(command, self._directory / f"{job}.log", cwd=self._directory, env=self._environment)
        process.start()
        if (ended := process.wait(START_LIMIT_S * 3)) != status:
            raise process.error(f"ended with status {ended} instead of {status}")
        return process.log_text()

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            if daemon.is_running:
                daemon.kill_group()

    def _start(self, name: str, daemon: str, *options: str, said: str) -> None:
        of_daemon = f"org.apache.spark.deploy.{daemon.lower()}.{daemon}"
        command = [str(SPARK_HOME / "bin" / "spark-class"), of_daemon, "--host", "127.0.0.1", "--webui-port", "0"]
        log = self._directory / f"{name}.log"
        process = ManagedProcess([*command, *options], log, cwd=self._directory, env=self._environment)
        self._daemons.append(process)
        process.start()
        process.wait_for_line_in_processor_time(said, START_LIMIT_S)
