"""Archive topics: stream their records to Parquet files partitioned by date, each exactly once across restarts.

    .venv/bin/python -m spark_jobs.archive_topic --topic events --output ./archive --checkpoint ./archive-checkpoint

The columns are those of Spark's kafka source (key, value, headers, topic, partition, offset, timestamp, timestampType)
and the folders' own (date; hour if asked for). `spark.read.parquet("./archive")` reads it back.

Exactly once: the checkpoint plans a batch as a range of offsets before it is read, the output lists the files of a
batch in one step, and a batch that was not listed is read again. That holds however the job ends. SIGTERM and SIGINT
end it with status 0 after the batch in flight; a failure ends it with status 1 and one line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.archive.archive_options import ArchiveOptions, parse_options
from spark_jobs.archive.archive_preview import preview
from spark_jobs.archive.archive_rows import archive_rows, schema_of
from spark_jobs.archive.parquet_output import ParquetOutput
from spark_jobs.common.cluster import Cluster
from spark_jobs.common.job import run_job, say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.common.streaming_run import Batch, StopRequest, follow, with_trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archive(spark: SparkSession, options: ArchiveOptions, stop: StopRequest) -> None:
    """Run the query until it ends, or until a signal asks for the end."""
    output = ParquetOutput(spark, options.output, options.checkpoint)
    if options.dry_run:
        dry_run(spark, options, output)
        return
    output.open()
    rows = archive_rows(
        spark.readStream.format("kafka").options(**options.source_options()).load(),
        partition_by=options.partition_by,
        timezone=options.timezone,
        key_format=options.key_format,
        value_format=options.value_format,
        schema=schema_of(options.schema),
    )
    writer = rows.writeStream.format("parquet").partitionBy(*options.partition_by)
    writer = writer.option("checkpointLocation", options.checkpoint).option("compression", options.compression)
    writer = with_trigger(writer, options.trigger_ms)
    batches = records = 0

    def on_batch(batch: Batch) -> None:
        nonlocal batches, records
        batches += 1
        records += batch.records
        say(batch.line())
        output.batch_listed(batch.number)

    if stop.requested:
        return
    say(f"archiving {options.source.name} of {options.source.connection.bootstrap_servers} to {options.output}")
    ending = follow(writer.start(options.output), stop, on_batch)
    say(f"{ending}: {records} records in {batches} {'batch' if batches == 1 else 'batches'}")


def dry_run(spark: SparkSession, options: ArchiveOptions, output: ParquetOutput) -> None:
    """Print what the next run would archive of what is there now."""
    output.check()
    source = options.source
    cluster = Cluster(source.connection)
    counts = cluster.partition_counts(source.topics or None)
    if source.subscribe_pattern is not None:
        assert spark._jvm is not None
        pattern = spark._jvm.java.util.regex.Pattern.compile(source.subscribe_pattern)
        counts = {topic: count for topic, count in counts.items() if pattern.matcher(topic).matches()}
    ranges = cluster.log_ranges(counts, source.read_range.starting_timestamp_ms)
    for line in preview(ranges, output.planned_offsets(), source.read_range.starting_offsets):
        say(line)


def check(options: ArchiveOptions) -> None:
    """What can be known without Spark. Raises: JobError."""
    check_reachable(options.source.connection.bootstrap_servers)
    Cluster(options.source.connection).check_topics(options.source.topics)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        "archive_topic",
        options.run,
        lambda spark, stop: archive(spark, options, stop),
        check=lambda: check(options),
    )


if __name__ == "__main__":
    sys.exit(main())
