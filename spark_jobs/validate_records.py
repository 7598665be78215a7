"""Validate records: those that a JSON Schema accepts go on to a topic, the others to a dead-letter topic.

    .venv/bin/python -m spark_jobs.validate_records --topic clicks --schema click.json --output-topic clicks-valid \\
        --dead-letter-topic clicks-bad --checkpoint ./validate-checkpoint --create-topic

Each record gets headers with its source position (odradek.source) and its timestamp (odradek.timestamp), a bad one also
the reason (odradek.reason). At least once: a batch that was broken off is written again by the next run, with the same
source positions. SIGTERM and SIGINT end the job with status 0 after the batch in flight.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.controller.model.assignment import BROKER_DEFAULT
from spark_jobs.common.cluster import Cluster
from spark_jobs.common.job import JobError, message_of, run_job, say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.common.streaming_run import Batch, StopRequest, follow, with_trigger
from spark_jobs.validation.counts import Counts
from spark_jobs.validation.json_schema import Rules, read_schema
from spark_jobs.validation.validation_options import ValidationOptions, parse_options
from spark_jobs.validation.verdicts import counts_by_kind, outgoing, with_verdicts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rules_of(options: ValidationOptions) -> Rules:
    """The rules, with their schemas read and checked. Raises: JobError."""
    key_schema = None if options.key_schema is None else read_schema(options.key_schema, "--key-schema")
    return Rules(
        value_schema=read_schema(options.schema, "--schema"),
        key_schema=key_schema,
        allow_null_values=options.allow_null_values,
        assert_formats=options.assert_formats,
    )


def check(options: ValidationOptions) -> None:
    """What can be known without Spark; creates the topics that are to be created. Raises: JobError."""
    rules_of(options)
    check_reachable(options.source.connection.bootstrap_servers)
    prepare_topics(options)


def prepare_topics(options: ValidationOptions) -> None:
    cluster = Cluster(options.source.connection)
    there = cluster.check_topics(options.source.topics)
    there |= cluster.partition_counts([options.output_topic, options.dead_letter_topic])
    if options.dry_run:
        return
    partitions = max((there[topic] for topic in options.source.topics), default=BROKER_DEFAULT)
    for topic in (options.output_topic, options.dead_letter_topic):
        if topic in there:
            continue
        if not options.create_topic:
            raise JobError(f"the topic {topic} is not there: create it, or use --create-topic")
        there[topic] = cluster.create_topic(topic, partitions, options.topic_config)
        say(f"created {topic}: {there[topic]} partitions")
    kept = there[options.output_topic]
    if options.keep_partitions and kept < partitions:
        raise JobError(f"--keep-partitions: {options.output_topic} has {kept} partitions, and {partitions} are read")


def validate(spark: SparkSession, options: ValidationOptions, stop: StopRequest) -> None:
    """Run the query until it ends, or until a signal asks for the end."""
    rules = rules_of(options)
    if options.dry_run:
        dry_run(spark, options, rules)
        return
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    by_batch: dict[int, Counts] = {}
    total = Counts()

    def write(records: DataFrame, number: int) -> None:
        judged = with_verdicts(records, rules).persist()  # it is counted and written, and judged once
        try:
            by_batch[number] = Counts()
            by_batch[number].add(counts := counts_by_kind(judged))
            rows = outgoing(
                judged,
                output_topic=options.output_topic,
                dead_letter_topic=options.dead_letter_topic,
                keep_partitions=options.keep_partitions,
            )
            rows.write.format("kafka").options(**options.source.connection.sink_options()).save()
            total.add(counts)
        except (PySparkException, Py4JJavaError) as error:  # else its message would be a traceback through Java
            raise JobError(message_of(error)) from None
        finally:
            judged.unpersist()

    def on_batch(batch: Batch) -> None:
        say(batch.line())
        counts = by_batch.pop(batch.number, Counts())
        for line in [f"  {counts.good} good, {counts.bad} bad", *counts.lines("    ")]:
            say(line)

    if stop.requested:
        return
    writer = spark.readStream.format("kafka").options(**options.source_options()).load().writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(options.checkpoint))
    writer = with_trigger(writer, options.trigger_ms)
    good, bad = options.output_topic, options.dead_letter_topic
    say(f"validating {options.source.name}: good records to {good}, bad ones to {bad}")
    ending = follow(writer.start(), stop, on_batch)
    say(f"{ending}: {total.good} good, {total.bad} bad")
    for line in total.lines():
        say(line)


def dry_run(spark: SparkSession, options: ValidationOptions, rules: Rules) -> None:
    """Count what is there now."""
    judged = with_verdicts(spark.read.format("kafka").options(**options.source_options()).load(), rules)
    counts = Counts()
    counts.add(counts_by_kind(judged))
    say(f"dry run, nothing was written: {counts.good} good, {counts.bad} bad")
    for line in counts.lines():
        say(line)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        "validate_records",
        options.run,
        lambda spark, stop: validate(spark, options, stop),
        check=lambda: check(options),
    )


if __name__ == "__main__":
    sys.exit(main())
