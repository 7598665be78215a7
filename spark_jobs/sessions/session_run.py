"""The streaming query of `sessionize`, and its dry run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.common.cluster import Cluster
from spark_jobs.common.job import say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.common.streaming_run import Batch, StopRequest, follow, with_trigger
from spark_jobs.sessions.session_options import SessionOptions
from spark_jobs.sessions.session_rows import OBSERVED, clicks, session_records, sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN_SESSIONS = 20


def check(options: SessionOptions) -> None:
    """Before Spark starts. Raises: JobError if there is no broker, or a topic is not there."""
    check_reachable(options.source.connection.bootstrap_servers)
    written = () if options.dry_run else (options.output_topic,)
    Cluster(options.source.connection).check_topics((*options.source.topics, *written))


def sessionize(spark: SparkSession, options: SessionOptions, stop: StopRequest) -> None:
    """Run the query until it ends, or until a signal asks for the end."""
    if options.dry_run:
        _preview(spark, options)
        return
    records = spark.readStream.format("kafka").options(**options.source.options()).load()
    writer = session_records(_sessions(records, options)).writeStream.format("kafka").outputMode("append")
    writer = writer.options(**options.source.connection.sink_options(), topic=options.output_topic)
    writer = writer.option("checkpointLocation", options.checkpoint)
    writer = with_trigger(writer, options.trigger_ms)
    totals = SessionTotals()

    def on_batch(batch: Batch) -> None:
        say(totals.line(batch))

    if stop.requested:
        return
    servers = options.source.connection.bootstrap_servers
    say(f"sessionizing {options.source.name} of {servers} to {options.output_topic}")
    ending = follow(writer.start(), stop, on_batch)
    say(f"{ending}: {totals.summary()}")


class SessionTotals:
    """Counts what the batches of a run report."""

    def __init__(self) -> None:
        self._batches = self._records = self._unreadable = self._late = 0
        self._open = 0

    def line(self, batch: Batch) -> str:
        """The line of a batch: Spark's counts of records that were left out, and of open sessions."""
        self._batches += 1
        self._records += batch.records
        unreadable = observed(batch.report, "unreadable")
        late = state_count(batch.report, "numRowsDroppedByWatermark")
        self._unreadable += unreadable
        self._late += late
        self._open = state_count(batch.report, "numRowsTotal")
        return f"{batch.line()}; unreadable {unreadable}, late {late}, open sessions {self._open}"

    def summary(self) -> str:
        batches = f"{self._batches} {'batch' if self._batches == 1 else 'batches'}"
        return (
            f"{self._records} records in {batches}; unreadable {self._unreadable}, late {self._late}, "
            f"open sessions {self._open}"
        )


def observed(report: Mapping[str, object], name: str) -> int:
    """A count of `clicks` in a batch's report; 0 for a batch without input."""
    metrics = report["observedMetrics"]
    assert isinstance(metrics, Mapping)
    return int(metrics[OBSERVED][name] or 0) if OBSERVED in metrics else 0


def state_count(report: Mapping[str, object], name: str) -> int:
    """A count of the open sessions' state in a batch's report.

    `numRowsDroppedByWatermark` counts clicks of one user at the same moment as one.
    """
    operators = report["stateOperators"]
    assert isinstance(operators, list)
    return sum(int(operator[name]) for operator in operators)


def _sessions(records: DataFrame, options: SessionOptions) -> DataFrame:
    return sessions(clicks(records, options.fields), gap_ms=options.gap_ms, watermark_ms=options.watermark_ms)


def _preview(spark: SparkSession, options: SessionOptions) -> None:
    """Print sessions of what is in the topics now. Nothing is late in a batch."""
    records = spark.read.format("kafka").options(**options.source.options()).load()
    found = _sessions(records, options).cache()
    count = found.count()
    for row in session_records(found.orderBy("first_click", "user").limit(SHOWN_SESSIONS)).collect():
        say(row.value)
    found.unpersist()
    more = f", {count - SHOWN_SESSIONS} more than shown" if count > SHOWN_SESSIONS else ""
    say(f"dry run: {count} sessions{more}; nothing is written to {options.output_topic}")
