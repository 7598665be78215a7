"""The command line of `restore_topic`, checked before a JVM is started."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.archive.restore_plan import KEEP_FOR_EVER, PlaceMapping, TimeRange
from spark_jobs.archive.restore_writer import WriterSettings
from spark_jobs.common.job import RunOptions
from spark_jobs.common.kafka_options import KafkaConnection
from spark_jobs.common.options import (
    add_connection_arguments,
    add_running_arguments,
    add_timezone_argument,
    add_topic_creation_arguments,
    connection_of,
    job_parser,
    key_value,
    moment_of,
    positive,
    run_options_of,
    topic,
    topics,
)

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_BATCH_RECORDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """One run of the job."""

    connection: KafkaConnection
    archive: str
    topics: tuple[str, ...]  # of the archive; empty: all
    mapping: PlaceMapping
    times: TimeRange
    create_topic: bool
    topic_config: dict[str, str]
    partitions: int | None  # of topics that are created; None: as in the archive
    group: str
    exactly_once: bool
    batch_records: int
    source_header: bool
    compression: str
    dry_run: bool
    run: RunOptions

    def writer_settings(self) -> WriterSettings:
        """How the tasks write. Raises: JobError for properties that confluent-kafka cannot use."""
        return WriterSettings(
            client=self.connection.client_config(),
            group=self.group,
            exactly_once=self.exactly_once,
            batch_records=self.batch_records,
            has_source_header=self.source_header,
            compression=self.compression,
            times=self.times,
        )


def parse_options(arguments: Sequence[str] | None = None) -> RestoreOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if not args.create_topic and (args.topic_config or args.partitions is not None):
        parser.error("--topic-config and --partitions belong to --create-topic")
    return RestoreOptions(
        connection=connection_of(args),
        archive=args.archive,
        topics=args.topic or (),
        mapping=PlaceMapping(topics=dict(args.map_topic), partitions=dict(args.map_partition)),
        times=TimeRange(
            starting_timestamp_ms=moment_of(parser, args, "--starting-timestamp"),
            ending_timestamp_ms=moment_of(parser, args, "--ending-timestamp"),
        ),
        create_topic=args.create_topic,
        topic_config=KEEP_FOR_EVER | dict(args.topic_config),
        partitions=args.partitions,
        group=args.group or default_group(args.archive),
        exactly_once=args.exactly_once,
        batch_records=args.batch_records,
        source_header=args.source_header,
        compression=args.compression,
        dry_run=args.dry_run,
        run=run_options_of(args),
    )


def default_group(archive: str) -> str:
    """The same for every restore of an archive."""
    place = archive if "://" in archive else str(Path(archive).absolute())
    return f"restore_topic-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(
        "restore_topic",
        "Write an archive of archive_topic back to topics: partitions, order, keys, values, headers and timestamps\n"
        "are those of the archive. A run that was killed is continued by starting it again.",
        "--archive ./archive --create-topic --exactly-once",
        "--archive ./archive --map-topic events=events-copy --map-partition 0=1 --map-partition 1=0 --dry-run",
    )
    add_connection_arguments(parser)
    _add_source_arguments(parser.add_argument_group("what is restored"))
    _add_target_arguments(parser.add_argument_group("where to"))
    running = add_running_arguments(parser)
    running.add_argument("--dry-run", action="store_true", help="print what would be written, and write nothing")
    return parser


def _add_source_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--archive", required=True, metavar="PATH", help="folder of the Parquet files, or a URL")
    group.add_argument("--topic", type=topics, metavar="TOPIC,...", help="topics of the archive (default: all)")
    group.add_argument(
        "--starting-timestamp", metavar="TIME", help="records of this time or later: ISO 8601 or epoch ms"
    )
    group.add_argument("--ending-timestamp", metavar="TIME", help="records before this time")
    add_timezone_argument(group)


def _add_target_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--map-topic",
        type=_topic_pair,
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="restore a topic under another name; repeatable",
    )
    group.add_argument(
        "--map-partition",
        type=_partition_pair,
        action="append",
        default=[],
        metavar="[TOPIC:]OLD=NEW",
        help="restore a partition into another one, of the archive's TOPIC or of all; repeatable. Several may go into "
        "one: they follow each other there",
    )
    add_topic_creation_arguments(group, "the archive's partitions and, unless configured, retention.ms=-1")
    group.add_argument(
        "--partitions", type=positive, metavar="N", help="of topics that are created (default: as in the archive)"
    )
    group.add_argument(
        "--exactly-once",
        action="store_true",
        help="write in transactions, which hold the progress too: nothing is doubled however a run ends",
    )
    group.add_argument(
        "--batch-records",
        type=positive,
        default=DEFAULT_BATCH_RECORDS,
        metavar="N",
        help="records between two commits of a partition's progress, or of one transaction (default: %(default)s)",
    )
    group.add_argument(
        "--group",
        type=topic,
        metavar="NAME",
        help="the consumer group that holds the progress of one archive and one range of times; with another one, "
        "everything is restored again (default: made of the archive's path)",
    )
    group.add_argument(
        "--source-header",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="add the header odradek.source, TOPIC:PARTITION:OFFSET in the archive (default: added)",
    )
    group.add_argument("--compression", choices=COMPRESSIONS, default="none", help="default: %(default)s")


def _topic_pair(text: str) -> tuple[str, str]:
    old, new = key_value(text)
    return topic(old), topic(new.strip())


def _partition_pair(text: str) -> tuple[tuple[str | None, int], int]:
    old, new = key_value(text)
    name, colon, number = old.rpartition(":")
    if not (number.isdecimal() and new.strip().isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW or TOPIC:OLD=NEW")
    return (topic(name) if colon else None, int(number)), int(new)
