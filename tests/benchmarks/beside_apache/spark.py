"""Spark's kafka sink and source, local[2]: 1,000-byte records in batches and in streams, and many small micro-batches.

First the same records four times: a batch writes them to a topic, a stream writes them to another one, a batch reads
the first, a stream reads the second. Then a stream with trigger 0 reads a topic of many partitions, to which four
records come during each micro-batch. Spark and its clients have their defaults: batches of 16 KB, acks=all, no
compression.

`ODRADEK_BENCH_SPARK_RECORDS=200000` makes the topics smaller, `ODRADEK_BENCH_SPARK_BATCHES=20` the second part shorter;
`ODRADEK_BENCH_SPARK_PAIRS` is how many pairs of new brokers do the first part.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, TypeAlias

import confluent_kafka

from tests.benchmarks.clients.librdkafka import FLUSH_TIMEOUT_S, RECORD_BYTES
from tests.benchmarks.contenders import Contender, Contenders, create_topic, delete_topic
from tests.benchmarks.measure import Table, Usage, usage_of
from tests.support.spark.pieces import kafka_batch, kafka_stream, local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

CONF: Final = {"spark.ui.enabled": "false", "spark.driver.memory": "2g"}
STREAM_TIMEOUT_S: Final = 600

RECORDS: Final = int(os.environ.get("ODRADEK_BENCH_SPARK_RECORDS", "1000000"))
GIGABYTES: Final = RECORDS * RECORD_BYTES / 1e9
PARTITIONS: Final = 6
BATCHES: Final = 10
"""A stream needs so many of them for all records."""
PAIRS: Final = int(os.environ.get("ODRADEK_BENCH_SPARK_PAIRS", "4"))
"""Of new brokers. Spark becomes faster, too, so Odradek is the first in every other pair."""
ROUNDS: Final = ("brokers that have just started", "the same brokers after that")
"""Java compiles what runs often, so Apache Kafka needs less processor time in the second round."""

SMALL_BATCHES: Final = int(os.environ.get("ODRADEK_BENCH_SPARK_BATCHES", "100"))
WARM_UP_BATCHES: Final = SMALL_BATCHES // 2
SMALL_BATCH: Final = 4
MANY_PARTITIONS: Final = 1_000
LOOK_PAUSE_S: Final = 0.1

Measured: TypeAlias = tuple[Usage, float]
"""Processor time of the broker, and wall seconds."""

Throughput: TypeAlias = dict[tuple[str, str], list[tuple[Measured, Measured]]]
"""Of Odradek and of Apache Kafka, by round and step, in each pair."""

FIGURES: Final[tuple[tuple[str, str, Callable[[Measured], float]], ...]] = (
    ("{}", "CPU s/GB", lambda took: took[0].total_s / GIGABYTES),
    ("  of it user", "s/GB", lambda took: took[0].user_s / GIGABYTES),
    ("  throughput", "MB/s", lambda took: GIGABYTES * 1e3 / took[1]),
)


def run(contenders: Contenders) -> None:
    directory = contenders.directory / "spark"
    directory.mkdir()
    with local_session("benchmark", directory, {**CONF, "spark.local.dir": str(directory)}) as spark:
        values = directory / "values"
        write_values(spark, values)
        warm_up(contenders, spark, values, directory)
        measured: Throughput = {(what, step): [] for what in ROUNDS for step in STEPS}
        for pair in range(PAIRS):
            with contenders.both(f"spark-{pair}") as brokers:
                measure_throughput(
                    spark, values, directory / str(pair), brokers, measured, is_second_first=pair % 2 == 1
                )
                if pair == PAIRS - 1:
                    show(measured)
                    compare_small_batches(spark, directory, *brokers)
            for broker in brokers:
                shutil.rmtree(broker.log_dir)  # else the next pair finds the page cache full of it


def warm_up(contenders: Contenders, spark: SparkSession, values: Path, directory: Path) -> None:
    """Spark does everything once with a broker that is not measured: otherwise the first one would get its start."""
    broker = contenders.new_odradek("warm-up")
    try:
        broker.start()
        load = Load(spark, broker, values, directory / "warm-up")
        for step in STEPS.values():
            step(load)
    finally:
        broker.close()


def measure_throughput(
    spark: SparkSession,
    values: Path,
    directory: Path,
    brokers: Sequence[Contender],
    measured: Throughput,
    *,
    is_second_first: bool,
) -> None:
    """Add what the two brokers of a pair take, in the order of `brokers`."""
    for number, what in enumerate(ROUNDS):
        loads = [Load(spark, broker, values, directory / f"{broker.target}-{number}") for broker in brokers]
        for name, step in STEPS.items():
            took = [measure(load.broker, step, load) for load in (loads[::-1] if is_second_first else loads)]
            ours, theirs = took[::-1] if is_second_first else took
            measured[what, name].append((ours, theirs))
        for load in loads:
            load.delete_topics()


def show(measured: Throughput) -> None:
    """Medians of all pairs."""
    size = f"{GIGABYTES * 1e3:.0f} MB a row of {RECORD_BYTES:,} B records"
    for what in ROUNDS:
        table = Table(f"Spark local[2], {size}, {PARTITIONS} partitions, {PAIRS} pairs, {what}")
        for name in STEPS:
            pairs = measured[what, name]
            for row, unit, figure in FIGURES:
                figures = [[figure(each) for each in side] for side in zip(*pairs, strict=True)]
                ratios = sorted(ours / theirs for ours, theirs in zip(*figures, strict=True))
                odradek, apache = map(median, figures)
                table.row(row.format(name), unit, odradek, apache, f"{ratios[0]:.2f} to {ratios[-1]:.2f}")


def write_values(spark: SparkSession, path: Path) -> None:
    """The records to write, as Parquet files: two for each micro-batch of a stream, so that it has two tasks."""
    value = f"cast(rpad(cast(id AS string), {RECORD_BYTES}, '.') AS binary) AS value"
    spark.range(0, RECORDS, numPartitions=2 * BATCHES).selectExpr(value).write.parquet(str(path))


class Load:
    """Topics of one broker, and what Spark does with them. Each step raises AssertionError if records are missing."""

    def __init__(self, spark: SparkSession, broker: Contender, values: Path, directory: Path) -> None:
        """`values`: the records to write. `directory`: for checkpoints."""
        self.broker = broker
        self._spark = spark
        self._values = str(values)
        self._directory = directory
        self._batch_topic, self._stream_topic = f"{directory.name}-batch", f"{directory.name}-stream"
        for topic in (self._batch_topic, self._stream_topic):
            create_topic(broker, topic, PARTITIONS)

    def write_batch(self) -> None:
        frame = self._spark.read.schema("value BINARY").parquet(self._values)
        frame.write.format("kafka").options(**self._sink(self._batch_topic)).save()

    def write_stream(self) -> None:
        frame = self._spark.readStream.schema("value BINARY").option("maxFilesPerTrigger", 2).parquet(self._values)
        self._run(frame.writeStream.format("kafka").options(**self._sink(self._stream_topic)))

    def read_batch(self) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        found = Observation()
        frame = kafka_batch(self._spark, self.broker.bootstrap, subscribe=self._batch_topic).load()
        frame.observe(found, F.count(F.lit(1)).alias("records")).write.format("noop").mode("overwrite").save()
        assert found.get["records"] == RECORDS, found.get

    def read_stream(self) -> None:
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(RECORDS // BATCHES)}
        frame = kafka_stream(self._spark, self.broker.bootstrap, subscribe=self._stream_topic, **options).load()
        self._run(frame.writeStream.format("noop"))

    def delete_topics(self) -> None:
        """Spark keeps its producers, and these may have the topics created again, empty."""
        for topic in (self._batch_topic, self._stream_topic):
            delete_topic(self.broker, topic)

    def _sink(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.broker.bootstrap, "topic": topic}

    def _run(self, stream: DataStreamWriter) -> None:
        """Run the stream over all that is there."""
        checkpoint = str(self._directory / f"checkpoint-{time.monotonic_ns()}")
        query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(STREAM_TIMEOUT_S), f"the stream takes longer than {STREAM_TIMEOUT_S} s"
        count = sum(progress.numInputRows for progress in query.recentProgress)
        assert count == RECORDS, count


STEPS: Final[dict[str, Callable[[Load], None]]] = {
    "batch write": Load.write_batch,
    "streaming write": Load.write_stream,
    "batch read": Load.read_batch,
    "streaming read": Load.read_stream,
}


def measure(broker: Contender, step: Callable[[Load], None], load: Load) -> Measured:
    os.sync()  # a step that finds much unwritten data in memory has to wait for the disk
    before, started = usage_of(broker.pid), time.perf_counter()
    step(load)
    return usage_of(broker.pid) - before, time.perf_counter() - started


def compare_small_batches(spark: SparkSession, directory: Path, odradek: Contender, apache: Contender) -> None:
    table = Table(f"Spark, trigger 0, {MANY_PARTITIONS:,} partitions, {SMALL_BATCHES} batches of {SMALL_BATCH} records")
    for used in (SMALL_BATCH, MANY_PARTITIONS):
        (ours, our_s), (theirs, their_s) = (
            SmallBatches(broker, directory / f"{broker.target}-small-{used}", used).measure(spark)
            for broker in (odradek, apache)
        )
        table.row(f"records in {used:,} partitions", "CPU ms/batch", ours.total_s * 1e3, theirs.total_s * 1e3)
        table.row("  of it user", "ms/batch", ours.user_s * 1e3, theirs.user_s * 1e3)
        table.row("  duration", "ms/batch", our_s * 1e3, their_s * 1e3)


class SmallBatches:
    """A stream from a topic to which a few records come during each batch, so that the next batch has them.

    With records in a few partitions, Spark keeps a consumer for each of them. With records in all partitions in turn,
    it makes a new consumer for each record, because it keeps 64.
    """

    def __init__(self, broker: Contender, directory: Path, used: int) -> None:
        """`used`: the number of partitions that get records. `directory`: for a checkpoint."""
        self._broker = broker
        self._directory = directory
        self._topic = directory.name
        self._partitions = itertools.cycle(range(used))
        self._producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        self._looks: list[Measured] = []
        self._is_over = threading.Event()

    def measure(self, spark: SparkSession) -> Measured:
        """What a batch takes. The first third of them warms up and is not counted."""
        create_topic(self._broker, self._topic, MANY_PARTITIONS)
        self._send()
        options = {"subscribe": self._topic, "startingOffsets": "earliest"}
        stream = kafka_stream(spark, self._broker.bootstrap, **options).load().writeStream.foreachBatch(self._take)
        query = stream.option("checkpointLocation", str(self._directory)).trigger(processingTime="0 seconds").start()
        while not self._is_over.wait(LOOK_PAUSE_S):
            assert query.isActive, query.exception()
        query.stop()
        delete_topic(self._broker, self._topic)
        (used_before, began), (used, ended) = self._looks
        spent = used - used_before
        return Usage(spent.user_s / SMALL_BATCHES, spent.system_s / SMALL_BATCHES), (ended - began) / SMALL_BATCHES

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        if batch_id in (WARM_UP_BATCHES, WARM_UP_BATCHES + SMALL_BATCHES):
            self._looks.append((usage_of(self._broker.pid), time.perf_counter()))
        if len(self._looks) < 2:
            self._send()
        else:
            self._is_over.set()

    def _send(self) -> None:
        for partition in itertools.islice(self._partitions, SMALL_BATCH):
            self._producer.produce(self._topic, bytes(RECORD_BYTES), partition=partition)
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0, "not everything was acknowledged"
