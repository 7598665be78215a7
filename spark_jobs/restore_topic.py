"""Restore topics: write an archive of `archive_topic` back, partition by partition, in its order.

    .venv/bin/python -m spark_jobs.restore_topic --archive ./archive --create-topic --exactly-once

Keys, values, headers and timestamps are those of the archive; a header with the source position is added. A run that
was killed is continued by the next one with the same archive (or --group) and the same times:
`spark_jobs.archive.restore_writer` says how the progress is kept, and why nothing is doubled with --exactly-once.
SIGTERM and SIGINT end a run with status 0.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from spark_jobs.archive.archive_reading import check_archive, overlaps_of, read_archive, rows_to_write, summarized
from spark_jobs.archive.restore_options import RestoreOptions, parse_options
from spark_jobs.archive.restore_plan import (
    Archived,
    Place,
    Positions,
    check_overlaps,
    config_warnings,
    missing_topics,
    partitions_needed,
    shown_time,
)
from spark_jobs.archive.restore_writer import Progress, Written, client_library, fence, records_of, write_records
from spark_jobs.common.cluster import Cluster
from spark_jobs.common.job import JobError, run_job, say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.common.stage_progress import StageProgress, StoppedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.common.streaming_run import StopRequest

SHOWN_PARTITIONS = 8
QUIET_S = 1.0
FINISHING_LIMIT_S = 30


def check(options: RestoreOptions) -> None:
    """What can be known without Spark. Raises: JobError."""
    client_library()
    options.writer_settings()
    check_archive(options.archive)
    check_reachable(options.connection.bootstrap_servers)


def restore(spark: SparkSession, options: RestoreOptions, stop: StopRequest) -> None:
    """Write what is not there yet, until the end or until a signal asks for it."""
    rows = read_archive(spark, options.archive, topics=options.topics, times=options.times)
    archived = summarized(rows)
    if not archived:
        raise JobError(
            f"{options.archive} has no records" + (f" of {', '.join(options.topics)}" * bool(options.topics))
        )
    check_overlaps(options.archive, overlaps_of(rows, archived))
    targets = sorted({options.mapping.target(each.place) for each in archived})
    to_create = prepare_topics(options, archived)
    done = progress_before(options, [target for target in targets if target.topic not in to_create])
    for each in archived:
        say(plan_line(each, options.mapping.target(each.place), done))
    if options.dry_run:
        say("dry run: nothing was written")
        return
    for topic, partitions in to_create.items():
        Cluster(options.connection).create_topic(topic, partitions, options.topic_config)
        configs = ", ".join(f"{name}={value}" for name, value in options.topic_config.items())
        say(f"created {topic}: {partitions} partitions, {configs}")
    how = " in transactions" if options.exactly_once else ""
    servers = options.connection.bootstrap_servers
    say(f"restoring {options.archive} to {servers}{how}, progress in group {options.group}")
    results = write(spark, options, rows_to_write(rows, archived, options.mapping, done), targets, stop)
    with closing(Progress(options.writer_settings())) as progress:
        say(end_line(results, archived, progress.read(targets)))


def progress_before(options: RestoreOptions, targets: Collection[Place]) -> dict[Place, Positions]:
    """Where earlier runs ended. A dry run leaves the transactions of a run that may be under way alone."""
    settings = options.writer_settings()
    if options.exactly_once and not options.dry_run:
        fence(settings, targets)  # a run that was killed may have left a commit undecided
    with closing(Progress(settings, is_stable=not options.dry_run)) as progress:
        return progress.read(targets)


def write(
    spark: SparkSession, options: RestoreOptions, rows: DataFrame, targets: Collection[Place], stop: StopRequest
) -> list[Written] | None:
    """Run the tasks; None if a signal has ended them."""
    settings = options.writer_settings()
    results = None
    with closing(Progress(settings, is_stable=False)) as shown:

        def line() -> str | None:
            try:
                return progress_line(shown.read(targets))
            except JobError:  # the next line may have it; the tasks have their own errors
                return None

        try:
            with suppress(StoppedError), StageProgress(spark, stop, line=line):
                results = rows.rdd.mapPartitions(lambda of_task: write_records(records_of(of_task), settings)).collect()
            if results is None and not options.exactly_once:
                with suppress(JobError):  # nobody to ask: there is nothing to wait for
                    wait_until_quiet(lambda: shown.read(targets))
        finally:
            if results is None and options.exactly_once:
                fence(settings, targets)
    return results


def wait_until_quiet(progress: Callable[[], object]) -> None:
    """Wait until the progress stands still, but not for brokers that may never answer.

    Spark calls a task ended when it has cancelled it. Its Python worker still writes the rows that it had received.
    """
    deadline = time.monotonic() + FINISHING_LIMIT_S
    last = progress()
    while time.monotonic() < deadline:
        time.sleep(QUIET_S)
        if (now := progress()) == last:
            return
        last = now


def prepare_topics(options: RestoreOptions, archived: Collection[Archived]) -> dict[str, int]:
    """The topics to create, by their partitions; prints what the configs of the others will do. Raises: JobError."""
    needed = partitions_needed(options.mapping.target(each.place) for each in archived)
    cluster = Cluster(options.connection)
    there = cluster.partition_counts(needed)
    missing = missing_topics(needed, there)
    if missing and not options.create_topic:
        raise JobError(f"the topic {', '.join(missing)} is not there: create it, or use --create-topic")
    first_ms: dict[str, int] = {}
    for each in archived:
        topic = options.mapping.target(each.place).topic
        first_ms[topic] = min(first_ms.get(topic, each.first_ms), each.first_ms)
    now_ms = time.time_ns() // 1_000_000
    for topic, configs in cluster.topic_configs([topic for topic in needed if topic in there]).items():
        for line in config_warnings(topic, configs, first_ms[topic], now_ms):
            say(f"warning: {line}")
    return {topic: max(count, options.partitions or 0) for topic, count in missing.items()}


def plan_line(archived: Archived, target: Place, done: dict[Place, Positions]) -> str:
    """For the terminal: `events:0 to copy:0: 400 records, offsets 0 to 399, 2024-01-01 00:00:00 to ...`."""
    begin = done.get(target, {}).get(archived.place, 0)
    first, last = shown_time(archived.first_ms), shown_time(archived.last_ms)
    rest = f", restored up to offset {begin - 1} already" if begin else ""
    return (
        f"{archived.place} to {target}: {archived.records} records, "
        f"offsets {archived.first_offset} to {archived.last_offset}, {first} to {last}{rest}"
    )


def progress_line(done: dict[Place, Positions]) -> str:
    """For the terminal: the next offset of each partition of the archive, by target."""
    shown = [f"{source}:{offset}" for positions in done.values() for source, offset in positions.items()]
    more = f" and {len(shown) - SHOWN_PARTITIONS} more" if len(shown) > SHOWN_PARTITIONS else ""
    return f"restored up to {' '.join(shown[:SHOWN_PARTITIONS])}{more}" if shown else "restoring the first batch"


def end_line(results: list[Written] | None, archived: Collection[Archived], done: dict[Place, Positions]) -> str:
    """The last line of a run."""
    if results is None:
        return f"stopped: {progress_line(done)}; start it again to go on"
    # Rows of earlier runs never reach a task: what tasks passed over was written by attempts of this run that failed.
    restored = sum(written.restored + written.skipped for written in results)
    total = sum(each.records for each in archived)
    return f"done: {restored} records restored, {total - restored} were there before"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        "restore_topic",
        options.run,
        lambda spark, stop: restore(spark, options, stop),
        check=lambda: check(options),
    )


if __name__ == "__main__":
    sys.exit(main())
