"""Archive topics: stream their records to Parquet files partitioned by date, each exactly once across restarts.

    .venv/bin/python -m spark_jobs.archive_topic --topic events --output ./archive --checkpoint ./archive-checkpoint

The columns are those of Spark's kafka source (key, value, headers, topic, partition, offset, timestamp, timestampType)
and the folders' own (date; hour if asked for). `spark.read.parquet("./archive")` reads it back.

Exactly once: the checkpoint plans a batch as a range of offsets before it is read, the output lists the files of a
batch in one step, and a batch that was not listed is read again. That holds however the job ends. SIGTERM and SIGINT
end it with status 0 after the batch in flight; a failure ends it with status 1 and one line.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.archive_options import ArchiveOptions, parse_options
from spark_jobs.connector import SetupError, first_line, spark_session
from spark_jobs.parquet_output import OutputError, ParquetOutput
from spark_jobs.streaming_run import Batch, StopRequest, follow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONNECT_TIMEOUT_S = 5
WRAPPINGS = (
    re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: "),
    re.compile(r" SQLSTATE: \w{5}$"),
    re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error): )"),
)


class JobError(Exception):
    """The job cannot run like this; the message is one line."""


def archive_rows(
    records: DataFrame,
    *,
    partition_by: Sequence[str] = ("date",),
    timezone: str = "UTC",
    key_format: str = "binary",
    value_format: str = "binary",
    schema: StructType | str | None = None,
) -> DataFrame:
    """The rows of the archive, from the columns of Spark's kafka source. The session's time zone is UTC.

    A value that is no JSON of this schema has null in `data` and is kept as it is in `value`.
    """
    from pyspark.sql import functions as F

    rows = records
    if key_format == "string":
        rows = rows.withColumn("key", F.col("key").cast("string"))
    if value_format in ("string", "json"):
        rows = rows.withColumn("value", F.col("value").cast("string"))
    if value_format == "json":
        assert schema is not None
        rows = rows.withColumn("data", F.from_json("value", schema))
    there = F.from_utc_timestamp("timestamp", timezone)
    if "date" in partition_by:
        rows = rows.withColumn("date", F.to_date(there))
    if "hour" in partition_by:
        rows = rows.withColumn("hour", F.hour(there))
    return rows


def archive(spark: SparkSession, options: ArchiveOptions, stop: StopRequest) -> None:
    """Run the query until it ends, or until a signal asks for the end."""
    output = ParquetOutput(spark, options.output, options.checkpoint)
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
    if options.trigger_ms is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.trigger_ms} milliseconds")
    batches = records = 0

    def on_batch(batch: Batch) -> None:
        nonlocal batches, records
        batches += 1
        records += batch.records
        say(batch.line())
        output.batch_listed(batch.number)

    if stop.requested:
        return
    source = options.subscribe_pattern or ", ".join(options.topics)
    say(f"archiving {source} of {options.bootstrap_servers} to {options.output}")
    follow(writer.start(options.output), stop, on_batch)
    how = "stopped" if stop.requested else "done"
    say(f"{how}: {records} records in {batches} {'batch' if batches == 1 else 'batches'}")


def schema_of(text: str | None) -> StructType | str | None:
    """A schema in Spark's JSON form, or as DDL, which Spark reads itself."""
    if text is None or not text.startswith("{"):
        return text
    from pyspark.sql.types import StructType

    try:
        return StructType.fromJson(json.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise JobError(f"--schema is no schema in Spark's JSON form: {error}") from None


def check_reachable(bootstrap_servers: str) -> None:
    """Say at once that no broker listens: Kafka's clients would try for a minute, and Spark three times over."""
    failures: list[str] = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S):
                return
        except ValueError:
            raise JobError(f"--bootstrap-servers: {server.strip()!r} is not HOST:PORT") from None
        except OSError as error:
            failures.append(f"{server.strip()}: {error.strerror or error}")
    raise JobError(f"no broker can be reached ({'; '.join(failures)})")


def say(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    stop = StopRequest()
    stop.install()
    try:
        check_reachable(options.bootstrap_servers)
        spark = spark_session(
            "archive_topic", master=options.master, conf=dict(options.conf), log_level=options.log_level
        )
    except (SetupError, JobError) as error:
        return fail(str(error))
    stop.install()  # PySpark has put its own handler of SIGINT in place
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        archive(spark, options, stop)
    except (JobError, OutputError, PySparkException) as error:
        return fail(str(error))
    except Py4JJavaError as error:  # what PySpark has no class of its own for, such as a folder that cannot be written
        return fail(error.java_exception.toString())
    finally:
        spark.stop()
    return 0


def fail(message: str) -> int:
    print(f"archive_topic: error: {reason(message)}", file=sys.stderr, flush=True)
    return 1


def reason(message: str) -> str:
    """An error's message, without what Spark adds to it: the ids of the query, the state, the packages of a class."""
    line = first_line(message)
    for wrapping in WRAPPINGS:
        line = wrapping.sub("", line)
    return line


if __name__ == "__main__":
    sys.exit(main())
