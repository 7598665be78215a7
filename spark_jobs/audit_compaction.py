"""Audit compacted topics in log directories: what compaction could still remove, and whether it has kept what it must.

    .venv/bin/python -m spark_jobs.audit_compaction --log-dirs ./data --topic users --save-snapshot ./before
    .venv/bin/python -m spark_jobs.audit_compaction --log-dirs ./data --topic users --before ./before

No broker is asked. Exit status: 0 nothing is wrong, 3 something is, 1 error, 2 wrong command line.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError, run_job, say
from spark_jobs.compaction.options import NAME, AuditOptions, parse_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.common.streaming_run import StopRequest
    from spark_jobs.compaction.log_layout import LogLayout

SOUND_STATUS = 0
WRONG_STATUS = 3
PARQUET_MARK = "_SUCCESS"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        NAME, options.run, lambda spark, stop: audit(spark, options, stop), check=lambda: check_before(options)
    )


def check_before(options: AuditOptions) -> None:
    """What can be wrong before a JVM starts. Raises: JobError."""
    from spark_jobs.kafka_log import check

    check(options.log_dirs, options.source_options())
    if options.before is not None and not is_snapshot(options.before):
        if "," not in options.before and not Path(options.before).is_dir():
            raise JobError(f"--before: there is no folder {options.before}")
        check(options.before, options.source_options())


def is_snapshot(path: str) -> bool:
    """Whether a path is what --save-snapshot has written, on this machine or elsewhere (`hdfs://...`)."""
    return "://" in path or (Path(path) / PARQUET_MARK).is_file()


def audit(spark: SparkSession, options: AuditOptions, stop: StopRequest) -> int:
    """Report, compare, write. Returns the exit status. Raises: JobError."""
    from spark_jobs.common.new_folder import check_new, write_new
    from spark_jobs.common.stage_progress import StageProgress
    from spark_jobs.compaction.latest import keyed_records, latest_records, savings
    from spark_jobs.compaction.log_layout import layouts
    from spark_jobs.compaction.report import Savings, savings_lines
    from spark_jobs.kafka_log import register

    register(spark)
    for path in (options.save_snapshot, options.report.output):
        if path is not None:
            check_new(spark, path)
    # Looked up before the records are read: what is active now is so at most longer ago then.
    found = layouts(options.log_dirs, options.source_options())
    records = keyed_records(_read(spark, options, options.log_dirs))
    with StageProgress(spark, stop) as progress:
        progress.begin("reading the logs")
        active = spark.createDataFrame(
            [(each.topic, each.partition, each.active_base) for each in found],
            "topic STRING, partition INT, active_base BIGINT",
        )
        rows = savings(records, active).orderBy("topic", "partition").collect()
        for line in savings_lines([Savings(**row.asDict()) for row in rows]):
            say(line)
        if options.save_snapshot is not None and not options.dry_run:
            progress.begin("writing the snapshot")
            write_new(latest_records(records), options.save_snapshot, "parquet")
        if options.before is None:
            return SOUND_STATUS
        progress.begin("comparing the latest records")
        return _compare(spark, options, records, found)


def _read(spark: SparkSession, options: AuditOptions, log_dirs: str) -> DataFrame:
    return spark.read.format("kafka_log").options(**options.source_options()).load(log_dirs)


def _compare(spark: SparkSession, options: AuditOptions, records: DataFrame, found: Sequence[LogLayout]) -> int:
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    from spark_jobs.common.new_folder import write_new
    from spark_jobs.compaction.latest import KEY, SNAPSHOT_COLUMNS, findings, keyed_records, latest_records
    from spark_jobs.compaction.report import Finding, finding_line, verdict

    assert options.before is not None
    if is_snapshot(options.before):
        before = spark.read.parquet(options.before).where(F.col("topic").isin(*options.topics))
        if set(before.columns) != set(SNAPSHOT_COLUMNS):
            raise JobError(f"--before: {options.before} is no snapshot of --save-snapshot")
    else:
        before = latest_records(keyed_records(_read(spark, options, options.before)))
    before = before.persist(StorageLevel.DISK_ONLY)
    starts = spark.createDataFrame(
        [(each.topic, each.partition, each.log_start) for each in found],
        "topic STRING, partition INT, log_start BIGINT",
    )
    wrong = findings(before, latest_records(records), starts).persist(StorageLevel.DISK_ONLY)
    counts = {row.kind: row["count"] for row in wrong.groupBy("kind").count().collect()}
    report = options.report
    for row in wrong.orderBy(*KEY).limit(report.shown).collect() if report.shown else []:
        say(finding_line(Finding(**{**row.asDict(), "key": bytes(row.key)})))
    for line in report.more(sum(counts.values())):
        say(line)
    if counts and report.output is not None and not options.dry_run:
        write_new(wrong, report.output, report.output_format)
    say(verdict(counts, before.count()))
    return WRONG_STATUS if counts else SOUND_STATUS


if __name__ == "__main__":
    sys.exit(main())
