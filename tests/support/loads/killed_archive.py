"""Runs of `archive_topic` on one output, and runs that are killed at random moments while records arrive."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.archive.archive_options import parse_options
from spark_jobs.archive_topic import archive
from spark_jobs.common.streaming_run import StopRequest
from tests.support.broker import Broker
from tests.support.spark.pieces import BackgroundProducer, Outgoing, Sent, SparkJob, received, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 3
# What a run has printed when it is killed, at a random moment soon after: a batch, or only that it has begun, which is
# then within the batch that the run before it died in.
BATCH, BEGUN = r"^batch \d+: ", r"^archiving "
KILLED_AFTER = (BATCH, BEGUN, BATCH)
JOB_START_LIMIT_S = 60
"""Of processor time, of Python and the JVM together; they need a quarter of it."""
JOB_END_TIMEOUT_S = 60
JOB_STOP_TIMEOUT_S = 30

Place = tuple[int, int]


class Archive:
    """An output and its checkpoint, and the runs of the job on them."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str, directory: Path) -> None:
        self.spark = spark
        self.output = directory / "archive"
        self.checkpoint = directory / "checkpoint"
        self.arguments = ["--bootstrap-servers", broker.bootstrap, "--topic", topic]
        self.arguments += ["--output", str(self.output), "--checkpoint", str(self.checkpoint)]

    def run(self, *arguments: str) -> None:
        """Archive what is there."""
        archive(self.spark, parse_options([*self.arguments, "--available-now", *arguments]), StopRequest())

    def read(self) -> DataFrame:
        return self.spark.read.parquet(str(self.output))

    def files(self) -> list[str]:
        """Every data file, listed by Spark or not."""
        return [str(path) for path in self.output.rglob("*.parquet")]


def hashes(records: Iterable[Sent]) -> dict[Place, str]:
    """The hash of each record's value by its place; a place that occurs twice is a failure."""
    found: dict[Place, str] = {}
    for record in records:
        assert (record.partition, record.offset) not in found, f"doubled: {record.partition}:{record.offset}"
        found[record.partition, record.offset] = hashlib.sha256(record.value or b"").hexdigest()
    return found


def check_kills(run: Archive, broker: Broker, topic: str, directory: Path, *, kills: int, seed: int) -> None:
    """Kill runs at random moments; in the end the archive has each (partition, offset) of the log once."""
    options = ["--master", "local[2]", "--trigger", "0s", "--max-offsets-per-trigger", "300"]
    sent = send(broker.bootstrap, topic, (Outgoing(value=b"%d" % number) for number in range(100)))
    first = SparkJob("archive_topic", [*run.arguments, "--available-now"], directory)
    log = first.run(BEGUN, JOB_START_LIMIT_S, JOB_END_TIMEOUT_S)
    assert "done: 100 records in 1 batch" in log.splitlines()

    job = SparkJob("archive_topic", [*run.arguments, *options], directory)
    producer = BackgroundProducer(broker.bootstrap, topic, PARTITIONS, per_second=300)
    moments = random.Random(seed)
    print(f"seed {seed}, {kills} kills")
    producer.start()
    try:
        for printed in islice(cycle(KILLED_AFTER), kills):
            job.process.start()
            job.process.wait_for_line_in_processor_time(printed, JOB_START_LIMIT_S)
            threading.Event().wait(moments.uniform(0, 1 if printed == BATCH else 3))
            job.kill_tree()
        job.process.start()
        job.process.wait_for_line_in_processor_time(BATCH, JOB_START_LIMIT_S)
        assert job.process.terminate(JOB_STOP_TIMEOUT_S) == 0
    finally:
        sent += producer.stop()
        if job.process.is_running:
            job.kill_tree()
    assert "stopped: " in job.process.log_text()

    run.run()

    produced = hashes(sent)
    assert len(produced) > 1_000
    assert hashes(received(run.read())) == produced
    # What is seen by a reader that knows nothing of Spark's list of files.
    assert hashes(received(run.spark.read.parquet(*run.files()))) == produced
