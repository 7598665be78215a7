"""Pieces of the tests of Spark: records to send, the rows they become, jobs as processes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import psutil
import pytest

from spark_jobs.common.connector import spark_session
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.process import ManagedProcess
from tests.support.spark.jvm import short_lived

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming import DataStreamReader

FLUSH_TIMEOUT_S = 30
JVM_STOP_TIMEOUT_S = 30
# PySpark leaves it to the garbage collector to close the socket that brought it rows.
MARKS = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings(r"ignore:unclosed <socket\.socket:ResourceWarning"),
]

Headers = tuple[tuple[str, bytes | None], ...]


def quick_conf(directory: Path) -> dict[str, str]:
    """For a JVM that lives a minute, with all it may leave behind in `directory`."""
    return {
        "spark.driver.defaultJavaOptions": f"{short_lived()} -Djava.io.tmpdir={directory}",
        "spark.local.dir": str(directory),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }


@contextmanager
def local_session(name: str, directory: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session in this process with two cores; its JVM ends with the block."""
    with chdir(directory):  # Spark 4.0.0 makes a folder `artifacts` where it is started
        session = spark_session(name, master="local[2]", conf=conf)
    gateway = session.sparkContext._gateway
    try:
        yield session
    finally:
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(JVM_STOP_TIMEOUT_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A record that a broker has acknowledged."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to send."""

    value: bytes | None
    partition: int = 0
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int = 0  # 0: the producer's clock


def send(bootstrap: str, topic: str, records: Iterable[Outgoing], **config: str) -> list[Sent]:
    """Send records and wait for every acknowledgement; in the order of the acknowledgements."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **config})
    # Records of a topic that the producer does not know yet are handed to its partitions one by one, while `flush`
    # sends what is there: a batch could come in two.
    producer.list_topics(topic, FLUSH_TIMEOUT_S)
    sent: list[Sent] = []
    for record in records:
        _produce(producer, topic, record, sent)
        producer.poll(0)
    assert producer.flush(FLUSH_TIMEOUT_S) == 0, "records were not acknowledged"
    return sent


def _produce(producer: confluent_kafka.Producer, topic: str, record: Outgoing, sent: list[Sent]) -> None:
    def acknowledged(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        sent.append(
            Sent(
                topic=topic,
                partition=message.partition(),
                offset=message.offset(),
                timestamp_ms=message.timestamp()[1],
                key=record.key,
                value=record.value,
                headers=record.headers,
            )
        )

    producer.produce(
        topic,
        record.value,
        record.key,
        partition=record.partition,
        headers=list(record.headers),
        timestamp=record.timestamp_ms,
        on_delivery=acknowledged,
    )


class BackgroundProducer:
    """Sends so many records a second from a thread, until `stop`; then `sent` has all of them."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, per_second: int) -> None:
        self.sent: list[Sent] = []
        # After a broker was away for long, all that waits would be one batch, larger than a small segment may be.
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all", "batch.size": 100_000}
        self._producer = confluent_kafka.Producer(settings)
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[Sent]:
        self._stopping.set()
        self._thread.join(FLUSH_TIMEOUT_S)
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0, "records were not acknowledged"
        return self.sent

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(self._pause_s):
            record = Outgoing(
                partition=number % self._partitions, key=b"%d" % (number % 7), value=b"record %d " % number * 5
            )
            _produce(self._producer, self._topic, record, self.sent)
            self._producer.poll(0)
            number += 1


def kafka_batch(spark: SparkSession, bootstrap: str, **options: str) -> DataFrameReader:
    return spark.read.format("kafka").options(**{"kafka.bootstrap.servers": bootstrap}, **options)


def kafka_stream(spark: SparkSession, bootstrap: str, **options: str) -> DataStreamReader:
    return spark.readStream.format("kafka").options(**{"kafka.bootstrap.servers": bootstrap}, **options)


def received(frame: DataFrame) -> list[Sent]:
    """The rows of Spark's kafka source as the records they were, in the order of their place."""
    from pyspark.sql import functions as F

    columns = ["topic", "partition", "offset", F.unix_millis("timestamp").alias("timestamp_ms"), "key", "value"]
    has_headers = "headers" in frame.columns
    rows = frame.select(*columns, *(["headers"] if has_headers else [])).collect()
    records = (
        Sent(
            topic=row.topic,
            partition=row.partition,
            offset=row.offset,
            timestamp_ms=row.timestamp_ms,
            key=_bytes(row.key),
            value=_bytes(row.value),
            headers=tuple((header.key, _bytes(header.value)) for header in row.headers or ()) if has_headers else (),
        )
        for row in rows
    )
    return in_order(records)


def in_order(records: Iterable[Sent]) -> list[Sent]:
    return sorted(records, key=lambda record: (record.topic, record.partition, record.offset))


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


class SparkJob:
    """A job of `spark_jobs`, as a user starts it, but in a directory of its own for what it leaves behind."""

    def __init__(self, module: str, arguments: Sequence[str], directory: Path) -> None:
        command = [sys.executable, "-m", f"spark_jobs.{module}", *arguments]
        for key, value in quick_conf(directory).items():
            command += ["--conf", f"{key}={value}"]
        environment = {"PYTHONPATH": str(REPOSITORY)}
        self.process = ManagedProcess(command, directory / f"{module}.log", cwd=directory, env=environment)

    def run(self, begun: str, start_limit_s: float, timeout_s: float) -> str:
        """Run the job, which prints `begun` on its way, to its end, a good one, and return what it printed.

        `start_limit_s`: of processor time until `begun`; `timeout_s`: from then on.
        """
        self.process.start()
        self.process.wait_for_line_in_processor_time(begun, start_limit_s)
        children = psutil.Process(self.process.pid).children(recursive=True)
        status = self.process.wait(timeout_s)
        if status != 0:
            raise self.process.error(f"ended with status {status}")
        psutil.wait_procs(children, timeout=timeout_s)  # the JVM ends after the job
        return self.process.log_text()

    def kill_tree(self) -> None:
        """SIGKILL to Python and the JVM it started."""
        kill_tree(self.process)


def kill_tree(process: ManagedProcess) -> None:
    """SIGKILL to a process of Spark and to all that it started: the JVM, and the JVM's Python workers.

    All of them stop first, the JVM before its Python: while it runs, a JVM whose Python has died undoes what it has
    begun to write.
    """
    python = psutil.Process(process.pid)
    family = [*python.children(recursive=True), python]
    for send in (psutil.Process.suspend, psutil.Process.kill):
        for member in family:
            with suppress(psutil.NoSuchProcess):  # some live for a moment (`chmod`), or end with their parent (workers)
                send(member)
    psutil.wait_procs(family, timeout=10)
    process.wait(10)
