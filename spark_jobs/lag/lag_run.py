"""A run of `consumer_lag`: each sample reads on in `__consumer_offsets`, asks for log ends, and makes the outputs anew.

The streaming query has a checkpoint only for as long as the run: the table of commits is made from the beginning of the
log, as a coordinator makes its own, so nothing has to be kept between runs but the history of samples.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.common.cluster import Cluster
from spark_jobs.common.code_archive import send_code
from spark_jobs.common.job import JobError, message_of, say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.common.streaming_run import has_ended
from spark_jobs.lag.group_table import GroupTable, committed_at_points
from spark_jobs.lag.history import History
from spark_jobs.lag.lag_table import summary_line, table_lines
from spark_jobs.lag.offset_records import TOPIC
from spark_jobs.lag.offset_rows import TimePoints, decoded, last_by_point
from spark_jobs.lag.outputs import Outputs
from spark_jobs.lag.sampling import chosen, earlier_samples, samples_now
from spark_jobs.lag.trends import Sample, sample_rows, trends
from spark_jobs.lag.verdicts import GroupReport, group_reports, partition_report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.common.streaming_run import StopRequest
    from spark_jobs.lag.group_table import OffsetRow
    from spark_jobs.lag.lag_options import LagOptions


def check(options: LagOptions) -> None:
    """Before Spark starts. Raises: JobError if there is no broker, or no group has ever committed an offset."""
    servers = options.connection.bootstrap_servers
    check_reachable(servers)
    if not Cluster(options.connection).partition_counts([TOPIC]):
        raise JobError(f"there is no {TOPIC} on {servers}: no consumer group has committed an offset yet")
    if options.output is not None and Path(options.output).exists() and not Path(options.output).is_dir():
        raise JobError(f"--output {options.output} is no folder")


def consumer_lag(spark: SparkSession, options: LagOptions, stop: StopRequest) -> None:
    """Take one sample, or samples until a signal asks for the end."""
    send_code(spark.sparkContext)
    with tempfile.TemporaryDirectory(prefix="consumer-lag-") as checkpoint:
        run = LagRun(spark, options, Path(checkpoint).as_uri(), now_ms)
        reports = run.sample(stop)
        if reports is None:
            return
        for line in table_lines(reports) if options.once else [summary_line(reports)]:
            say(line)
        run.say_what_is_written()
        if not options.once:
            _follow(run, options.trigger_ms, stop)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _follow(run: LagRun, trigger_ms: int, stop: StopRequest) -> None:
    """Take a sample every `trigger_ms`."""
    due_s = time.monotonic()
    while True:
        due_s = max(due_s + trigger_ms / 1_000, time.monotonic())
        if stop.wait_until(due_s):
            break
        try:
            reports = run.sample(stop)
        except JobError as error:  # brokers that do not answer now may answer the next time
            say(f"no sample: {error}")
        else:
            if reports is not None:
                say(summary_line(reports))
    say("stopped")


class LagRun:
    """The table of groups, the samples, and what is made of them. `now_ms`: the time since the epoch."""

    def __init__(self, spark: SparkSession, options: LagOptions, checkpoint: str, now_ms: Callable[[], int]) -> None:
        self._spark = spark
        self._options = options
        self._checkpoint = checkpoint
        self._now_ms = now_ms
        self._cluster = Cluster(options.connection)
        self._points = TimePoints.before(now_ms(), options.window_ms, options.points)
        self._table = GroupTable()
        self._first_rows: list[OffsetRow] = []  # until the first sample: what was committed at the points
        self._estimated: list[Sample] | None = None
        self._outputs = None if options.dry_run else Outputs(options)
        self._history = None if self._outputs is None else History(spark, self._outputs.history)

    def sample(self, stop: StopRequest) -> list[GroupReport] | None:
        """Look at the cluster once, and write everything anew.

        The reports of the groups, the worst first; None if a signal has asked for the end. Raises: JobError.
        """
        # The sample has the time before the commits are read: no commit up to then is missing.
        sampled_ms = self._now_ms()
        if not self._read_commits(stop):
            return None
        keys = chosen(self._table.partitions(), groups=self._options.groups, topics=self._options.topics)
        samples = samples_now(self._table, keys, self._cluster, sampled_ms)
        window = self._window(samples, sampled_ms).cache()
        try:
            found = trends(window)
            reports = group_reports(
                partition_report(
                    sample, found.get((sample.group, sample.topic, sample.partition)), self._options.limits
                )
                for sample in samples
            )
            if self._outputs is not None:
                self._outputs.write(reports, self._plotted(reports, window), sampled_ms)
        finally:
            window.unpersist()
        return reports

    def say_what_is_written(self) -> None:
        if self._table.unreadable:
            say(f"{self._table.unreadable} records of {TOPIC} cannot be read: a newer Kafka may have written them")
        if self._outputs is None:
            say("dry run: nothing is written")
        else:
            say(f"page: {self._outputs.page_uri}")

    def _read_commits(self, stop: StopRequest) -> bool:
        """Read what is new in `__consumer_offsets`, up to its end. False if a signal has asked for the end.

        What was read before an error is read again by the next sample. Raises: JobError.
        """
        from pyspark.errors import StreamingQueryException

        count = self._cluster.partition_counts([TOPIC]).get(TOPIC)
        if count is None:
            raise JobError(f"{TOPIC} is not there any more")
        source = {
            **self._options.connection.source_options(),
            # A subscription would make a group of its own.
            "assign": json.dumps({TOPIC: list(range(count))}),
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",  # offsets of an aborted transaction are not committed
            "failOnDataLoss": "false",  # tombstones and old commits are compacted away
        }
        records = self._spark.readStream.format("kafka").options(**source).load()
        writer = records.writeStream.foreachBatch(self._take).option("checkpointLocation", self._checkpoint)
        query = writer.trigger(availableNow=True).start()
        try:
            while not has_ended(query):
                if stop.requested:
                    query.stop()
                    return False
        except StreamingQueryException as error:  # a broker has died, for example
            raise JobError(message_of(error)) from error
        return True

    def _take(self, records: DataFrame, _number: int) -> None:
        rows = last_by_point(decoded(records), self._points).collect()
        if self._estimated is None:
            self._first_rows += rows
        self._table.apply(rows)

    def _window(self, samples: Sequence[Sample], sampled_ms: int) -> DataFrame:
        """All samples of the window, these included."""
        first_ms = sampled_ms - self._options.window_ms
        if self._history is None:
            known = sample_rows(self._spark, samples)
        else:
            self._history.append(list(samples))
            known = self._history.since(first_ms)
        if self._estimated is None:
            self._estimated = self._estimates(samples, known)
        self._estimated = [sample for sample in self._estimated if sample.time_ms >= first_ms]
        return known.unionByName(sample_rows(self._spark, self._estimated))

    def _estimates(self, samples: Sequence[Sample], known: DataFrame) -> list[Sample]:
        """Samples for the part of the window that is before the history."""
        from pyspark.sql import functions as F

        oldest_ms = known.agg(F.min("time_ms")).collect()[0][0]
        times_ms = [time_ms for time_ms in self._points.times_ms() if oldest_ms is not None and time_ms < oldest_ms]
        committed = committed_at_points(self._first_rows, self._points.count)
        self._first_rows = []
        return earlier_samples(committed, samples, self._cluster, times_ms)

    def _plotted(self, reports: Sequence[GroupReport], window: DataFrame) -> dict[str, list[Sample]]:
        """The samples of the groups that are plotted, by group."""
        from pyspark.sql import functions as F

        groups = [report.group for report in reports[: self._options.plots]]
        plotted: dict[str, list[Sample]] = {group: [] for group in groups}
        for row in window.where(F.col("group").isin(groups)).collect() if groups else ():
            sample = Sample(**row.asDict())
            plotted[sample.group].append(sample)
        return plotted
