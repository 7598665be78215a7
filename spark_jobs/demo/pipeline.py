"""The steps of the demo: produce clicks, validate them, make sessions, archive, and look at the lag of two groups."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.common.job import say
from spark_jobs.demo.child_processes import ChildProcesses
from spark_jobs.demo.made_clicks import SCHEMA, clicks

PARTITIONS = 2
SLOW_GROUP_READS = 300
TOPICS = ("clicks", "clicks-valid", "clicks-bad", "sessions")


class Pipeline:
    """One run of the demo: all that it writes is in `folder`, an absolute path."""

    def __init__(self, children: ChildProcesses, folder: Path, conf: Sequence[str]) -> None:
        self._children = children
        self._folder = folder
        self._conf = [part for setting in conf for part in ("--conf", setting)]
        self._address = ""

    def run(self, count: int) -> None:
        """All steps with so many clicks. Raises: JobError when one fails."""
        self._address = self._children.start_broker()
        say(f"a broker listens on {self._address}")
        for topic in TOPICS:
            create = ["topics", "--bootstrap-server", self._address, "--create", "--topic", topic]
            self._odradek(*create, "--partitions", str(PARTITIONS))
        self._produce(count)
        schema = self._folder / "click.json"
        schema.write_text(json.dumps(SCHEMA, indent=2) + "\n")
        self._job(
            "validate_records",
            *("--topic", "clicks", "--schema", schema.name, "--output-topic", "clicks-valid"),
            *("--dead-letter-topic", "clicks-bad", "--checkpoint", "validate-checkpoint", "--available-now"),
        )
        self._job(
            "sessionize",
            *(
                "--topic",
                "clicks-valid",
                "--output-topic",
                "sessions",
                "--gap",
                "10 minutes",
                "--watermark",
                "5 minutes",
            ),
            *("--checkpoint", "sessions-checkpoint", "--available-now"),
        )
        self._consume()
        self._job(
            "archive_topic",
            *("--topic", "clicks-valid,sessions", "--output", "archive", "--partition-by", "topic,date"),
            *("--value-format", "string", "--checkpoint", "archive-checkpoint", "--available-now"),
        )
        self._job(
            "consumer_lag",
            *("--once", "--output", "lag", "--window", "5 minutes", "--stalled-after", "10 seconds"),
        )

    def where_to_look(self) -> list[str]:
        return [
            f"page of the lag   {(self._folder / 'lag' / 'index.html').as_uri()}",
            f"sessions          {self._folder / 'sessions.jsonl'}",
            f"bad records       {self._folder / 'bad-records.jsonl'} (with their reasons, in the headers)",
            f"archive           {self._folder / 'archive'} (Parquet; the clicks and the sessions)",
            f"the topics        odradek serve --port 9092 --data {self._folder / 'broker-data'}",
        ]

    def _produce(self, count: int) -> None:
        records = clicks(count, end_ms=time.time_ns() // 1_000_000)
        lines = "".join(f"{key}\t{value}\n" for key, value in records)
        self._odradek("produce", "-b", self._address, "-t", "clicks", "-K", r"\t", "--verbose", source=lines)

    def _consume(self) -> None:
        """A group that reads all sessions, and one that reads some clicks and then stops."""
        read = ["consume", "-b", self._address, "-o", "beginning", "--json", "--quiet"]
        self._odradek(*read, "-t", "sessions", "-G", "reports", "-e", output=self._folder / "sessions.jsonl")
        some = str(SLOW_GROUP_READS)
        self._odradek(*read, "-t", "clicks-valid", "-G", "billing", "-c", some, output=self._folder / "billing.jsonl")
        self._odradek(*read, "-t", "clicks-bad", "-e", output=self._folder / "bad-records.jsonl")

    def _odradek(self, *arguments: str, source: str | None = None, output: Path | None = None) -> None:
        self._children.run("odradek", arguments, source=source, output=output)

    def _job(self, job: str, *arguments: str) -> None:
        self._children.run(f"spark_jobs.{job}", ["--bootstrap-servers", self._address, *arguments, *self._conf])
