"""Apache Kafka's command-line tools, run against the broker under test.

Each run is a JVM and costs about a second, so a test asks one tool several things rather than one thing several times.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.apache.jvm import QUICK_START, java_command

TOOL_TIMEOUT_S = 60

TOOL_CLASSES: Mapping[str, str] = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "configs": "kafka.admin.ConfigCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "acls": "kafka.admin.AclCommand",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "dump-log": "kafka.tools.DumpLogSegments",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "end-to-end-latency": "org.apache.kafka.tools.EndToEndLatency",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}
LOG4J = "log4j.rootLogger=WARN, stderr\nlog4j.appender.stderr=org.apache.log4j.ConsoleAppender\n" + (
    "log4j.appender.stderr.layout=org.apache.log4j.PatternLayout\n"
    "log4j.appender.stderr.layout.ConversionPattern=%p %m (%c)%n\nlog4j.appender.stderr.Target=System.err\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a tool ended and what it printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.stdout.splitlines() if line.strip()]


class Tools:
    """Runs Kafka's tools; `directory` holds their log configuration."""

    def __init__(self, directory: Path) -> None:
        self._log4j = directory / "tools-log4j.properties"
        self._log4j.write_text(LOG4J)

    def run(
        self,
        tool: str,
        *arguments: str,
        stdin: bytes | None = None,
        status: int | None = 0,
        timeout_s: float = TOOL_TIMEOUT_S,
    ) -> ToolResult:
        """Run one tool; its exit status must be `status` unless that is None."""
        options = ("-Xmx256m", *QUICK_START, f"-Dlog4j.configuration=file:{self._log4j}")
        command = java_command(TOOL_CLASSES[tool], *arguments, options=options)
        done = subprocess.run(
            command,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        result = ToolResult(
            status=done.returncode,
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
        )
        if status is not None and result.status != status:
            raise AssertionError(
                f"{tool} {' '.join(arguments)}: status {result.status}, expected {status}\n"
                f"{result.stdout}\n{result.stderr}"
            )
        return result
