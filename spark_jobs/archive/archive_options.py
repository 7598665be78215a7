"""The command line of `archive_topic`, checked before a JVM is started.

Everything here is plain values: no Spark, no sockets, no files but those that `--schema` and `--command-config` name.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spark_jobs.common.job import RunOptions
from spark_jobs.common.options import (
    add_connection_arguments,
    add_range_arguments,
    add_running_arguments,
    add_trigger_arguments,
    client_property,
    job_parser,
    positive,
    run_options_of,
    trigger_ms_of,
)
from spark_jobs.common.stream_source import StreamSource, add_source_arguments, source_of

PARTITION_COLUMNS = ("topic", "date", "hour")
COMPRESSIONS = ("snappy", "gzip", "lz4", "zstd", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """One run of the job."""

    source: StreamSource
    output: str
    checkpoint: str
    min_partitions: int | None
    trigger_ms: int | None  # None: all that is there now, then end
    partition_by: tuple[str, ...]
    timezone: str
    key_format: str
    value_format: str
    schema: str | None
    include_headers: bool
    compression: str
    dry_run: bool
    run: RunOptions

    def source_options(self) -> dict[str, str]:
        """The options of Spark's kafka source."""
        options = self.source.options() | {"includeHeaders": str(self.include_headers).lower()}
        if self.min_partitions is not None:
            options["minPartitions"] = str(self.min_partitions)
        return options


def parse_options(arguments: Sequence[str] | None = None) -> ArchiveOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.value_format == "json" and args.schema is None:
        parser.error("--value-format json needs --schema")
    if args.schema is not None and args.value_format != "json":
        parser.error("--schema belongs to --value-format json")
    source = source_of(parser, args)
    properties = dict(source.connection.properties) | dict(args.consumer_option)
    connection = replace(source.connection, properties=tuple(properties.items()))
    return ArchiveOptions(
        source=replace(source, connection=connection),
        output=args.output,
        checkpoint=args.checkpoint,
        min_partitions=args.min_partitions,
        trigger_ms=trigger_ms_of(args),
        partition_by=args.partition_by,
        timezone=args.timezone,
        key_format=args.key_format,
        value_format=args.value_format,
        schema=args.schema,
        include_headers=args.include_headers,
        compression=args.compression,
        dry_run=args.dry_run,
        run=run_options_of(args),
    )


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(
        "archive_topic",
        "Stream topics to Parquet files partitioned by date, every record exactly once across restarts. The archive\n"
        "has the columns of Spark's kafka source: key, value, headers, topic, partition, offset, timestamp.",
        "--topic events --output ./archive --checkpoint ./archive-checkpoint",
        "--subscribe-pattern 'orders-.*' --output s3a://lake/orders --checkpoint s3a://lake/orders-checkpoint \\\n"
        "      --available-now --command-config client.properties",
    )
    cluster = add_connection_arguments(parser, older_names=("--consumer-config",))
    cluster.add_argument(
        "--consumer-option",
        type=client_property,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Kafka's consumer, isolation.level=read_committed; repeatable; replaces that of the file",
    )
    add_source_arguments(parser).add_argument(
        "--min-partitions", type=positive, metavar="N", help="split large partitions to have at least N tasks"
    )
    add_range_arguments(parser, ending=False)
    _add_output_arguments(parser.add_argument_group("what is written"))
    add_trigger_arguments(add_running_arguments(parser))
    return parser


def _add_output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--output", required=True, metavar="PATH", help="folder of the Parquet files, or a URL")
    group.add_argument(
        "--checkpoint", required=True, metavar="PATH", help="folder of the job's progress; one per output"
    )
    group.add_argument(
        "--partition-by",
        type=_partition_by,
        default=("date",),
        metavar="COLUMN,...",
        help="folders, of topic, date and hour of the record's timestamp (default: date)",
    )
    group.add_argument("--key-format", choices=("binary", "string"), default="binary", help="default: %(default)s")
    group.add_argument(
        "--value-format",
        choices=("binary", "string", "json"),
        default="binary",
        help="json keeps the value as a string and adds it parsed, as column data, null where it does not parse "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--schema",
        type=_schema,
        metavar="SCHEMA",
        help="of the JSON: DDL (id BIGINT, name STRING), Spark's JSON form, or a file that holds either",
    )
    group.add_argument(
        "--include-headers", action=argparse.BooleanOptionalAction, default=True, help="default: included"
    )
    group.add_argument("--compression", choices=COMPRESSIONS, default="snappy", help="default: %(default)s")
    group.add_argument(
        "--dry-run", action="store_true", help="check everything, print what would be archived, and write nothing"
    )


def _partition_by(text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(","))
    if not set(columns) <= set(PARTITION_COLUMNS) or len(set(columns)) != len(columns):
        raise argparse.ArgumentTypeError(f"{text!r} is no choice of {', '.join(PARTITION_COLUMNS)}")
    return columns


def _schema(text: str) -> str:
    """The text of a schema; Spark checks it."""
    try:
        is_file = Path(text).is_file()
    except OSError:  # a schema longer than a file name may be
        is_file = False
    return Path(text).read_text().strip() if is_file else text
