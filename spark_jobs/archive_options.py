"""The options of `archive_topic`: its command line, checked before a JVM is started, and Spark's options for it.

Everything here is plain values: no Spark, no sockets, no files but those that `--schema` and `--consumer-config` name.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from odradek.storage.disk.properties_file import parse_properties

EARLIEST = "earliest"
PARTITION_COLUMNS = ("topic", "date", "hour")
COMPRESSIONS = ("snappy", "gzip", "lz4", "zstd", "none")
LOG_LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG")
INTERVAL_UNITS_MS = (
    (re.compile(r"(\d+)\s*(?:ms|milliseconds?)"), 1),
    (re.compile(r"(\d+)\s*(?:s|seconds?)"), 1_000),
    (re.compile(r"(\d+)\s*(?:m|minutes?)"), 60_000),
    (re.compile(r"(\d+)\s*(?:h|hours?)"), 3_600_000),
)
MASTER = re.compile(r"local(\[.+\])?$|yarn$|spark://|k8s://")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# Spark decides these itself, or an option of ours does.
RESERVED_CONSUMER_OPTIONS = {
    "auto.offset.reset": "use --starting-offsets",
    "bootstrap.servers": "use --bootstrap-servers",
    "enable.auto.commit": "Spark keeps the offsets in the checkpoint",
    "interceptor.classes": "Spark forbids it",
    "key.deserializer": "use --key-format",
    "value.deserializer": "use --value-format",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """One run of the job."""

    bootstrap_servers: str
    topics: tuple[str, ...]  # empty: subscribe_pattern
    subscribe_pattern: str | None
    output: str
    checkpoint: str
    starting_offsets: str
    starting_timestamp_ms: int | None
    max_offsets_per_trigger: int | None
    min_partitions: int | None
    trigger_ms: int | None  # None: all that is there now, then end
    partition_by: tuple[str, ...]
    timezone: str
    key_format: str
    value_format: str
    schema: str | None
    include_headers: bool
    compression: str
    consumer_options: tuple[tuple[str, str], ...]
    fail_on_data_loss: bool
    master: str | None
    conf: tuple[tuple[str, str], ...]
    log_level: str

    def source_options(self) -> dict[str, str]:
        """The options of Spark's kafka source."""
        options = {f"kafka.{key}": value for key, value in self.consumer_options}
        options["kafka.bootstrap.servers"] = self.bootstrap_servers
        if self.subscribe_pattern is None:
            options["subscribe"] = ",".join(self.topics)
        else:
            options["subscribePattern"] = self.subscribe_pattern
        if self.starting_timestamp_ms is None:
            options["startingOffsets"] = self.starting_offsets
        else:
            options["startingTimestamp"] = str(self.starting_timestamp_ms)
            # A partition with no record that late begins at its end, where the first such record will be.
            options["startingOffsetsByTimestampStrategy"] = "latest"
        options["includeHeaders"] = str(self.include_headers).lower()
        options["failOnDataLoss"] = str(self.fail_on_data_loss).lower()
        if self.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
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
    try:
        starting_timestamp_ms = _timestamp_ms(args.starting_timestamp, args.timezone)
    except ValueError as error:
        parser.error(f"argument --starting-timestamp: {error}")
    return ArchiveOptions(
        bootstrap_servers=args.bootstrap_servers,
        topics=args.topic or (),
        subscribe_pattern=args.subscribe_pattern,
        output=args.output,
        checkpoint=args.checkpoint,
        starting_offsets=args.starting_offsets or EARLIEST,
        starting_timestamp_ms=starting_timestamp_ms,
        max_offsets_per_trigger=args.max_offsets_per_trigger,
        min_partitions=args.min_partitions,
        trigger_ms=None if args.available_now else args.trigger,
        partition_by=args.partition_by,
        timezone=args.timezone,
        key_format=args.key_format,
        value_format=args.value_format,
        schema=args.schema,
        include_headers=args.include_headers,
        compression=args.compression,
        consumer_options=tuple((dict(args.consumer_config) | dict(args.consumer_option)).items()),
        fail_on_data_loss=args.fail_on_data_loss,
        master=args.master,
        conf=tuple(args.conf),
        log_level=args.log_level,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="archive_topic",
        description="Stream topics to Parquet files partitioned by date, every record exactly once across restarts.",
        allow_abbrev=False,
    )
    _add_source_arguments(parser.add_argument_group("what is read"))
    _add_output_arguments(parser.add_argument_group("what is written"))
    running = parser.add_argument_group("how it runs")
    pace = running.add_mutually_exclusive_group()
    pace.add_argument(
        "--trigger",
        type=_interval_ms,
        default=5_000,
        metavar="INTERVAL",
        help='start a batch this often, "30 seconds" (default: 5 seconds; 0s: as soon as there is data)',
    )
    pace.add_argument("--available-now", action="store_true", help="archive what is there now, then end")
    running.add_argument("--master", type=_master, help="Spark master (default: local[*], or what spark-submit says)")
    running.add_argument(
        "--conf", type=_key_value, action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; repeatable"
    )
    running.add_argument(
        "--log-level", choices=LOG_LEVELS, default="FATAL", help="what Spark itself logs (default: %(default)s)"
    )
    return parser


def _add_source_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--bootstrap-servers", default="127.0.0.1:9092", metavar="HOST:PORT,...", help="default: %(default)s"
    )
    which = group.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", type=_topics, metavar="TOPIC,...", help="the topic, or several with commas")
    which.add_argument("--subscribe-pattern", type=_java_pattern, metavar="REGEX", help="every topic that matches")
    begin = group.add_mutually_exclusive_group()
    begin.add_argument(
        "--starting-offsets",
        type=_starting_offsets,
        metavar="earliest|latest|JSON",
        help="where the first run begins (a later one goes on from the checkpoint); JSON names every partition: "
        '{"events": {"0": 23, "1": -2}}, -2 is earliest and -1 latest (default: earliest)',
    )
    begin.add_argument(
        "--starting-timestamp",
        metavar="TIME",
        help="begin with the first record of this time or later: ISO 8601 (in --timezone, unless it says) or epoch ms",
    )
    group.add_argument(
        "--max-offsets-per-trigger", type=_positive, metavar="N", help="at most so many records in one batch"
    )
    group.add_argument(
        "--min-partitions", type=_positive, metavar="N", help="split large partitions to have at least N tasks"
    )
    group.add_argument(
        "--consumer-config",
        type=_consumer_config,
        default=(),
        metavar="FILE",
        help="a properties file with settings of Kafka's consumer: passwords in it are in no list of processes",
    )
    group.add_argument(
        "--consumer-option",
        type=_consumer_option,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Kafka's consumer, isolation.level=read_committed; repeatable; replaces that of the file",
    )
    group.add_argument(
        "--fail-on-data-loss",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="stop when records were deleted before they were read (default: yes)",
    )


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
    group.add_argument(
        "--timezone", type=_timezone, default="UTC", metavar="ZONE", help="whose date and hour (default: %(default)s)"
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


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(topic.strip() for topic in text.split(","))
    for topic in topics:
        if not TOPIC.fullmatch(topic):
            raise argparse.ArgumentTypeError(f"{topic!r} is no topic name")
    return topics


def _java_pattern(text: str) -> str:
    """Java's regular expressions are not Python's: only the empty one is surely a mistake."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty pattern")
    return text


def _starting_offsets(text: str) -> str:
    if text in (EARLIEST, "latest"):
        return text
    try:
        offsets = json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither earliest, latest nor JSON") from None
    if not isinstance(offsets, dict) or not all(_are_offsets(of_topic) for of_topic in offsets.values()):
        raise argparse.ArgumentTypeError(f'{text!r} is not of the form {{"topic": {{"0": 23}}}}')
    return text


def _are_offsets(of_topic: object) -> bool:
    return (
        isinstance(of_topic, dict)
        and bool(of_topic)
        and all(partition.isdecimal() for partition in of_topic)
        and all(isinstance(offset, int) and offset >= -2 for offset in of_topic.values())
    )


def _timestamp_ms(text: str | None, timezone: str) -> int | None:
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone(timezone))
    since_epoch = moment - datetime(1970, 1, 1, tzinfo=UTC)
    if since_epoch.days < 0:
        raise ValueError(f"{text} is before 1970")
    return since_epoch.days * 86_400_000 + since_epoch.seconds * 1_000 + since_epoch.microseconds // 1_000


def _interval_ms(text: str) -> int:
    for pattern, unit_ms in INTERVAL_UNITS_MS:
        if found := pattern.fullmatch(text.strip()):
            return int(found[1]) * unit_ms
    raise argparse.ArgumentTypeError(f'{text!r} is no interval such as "30 seconds"')


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _master(text: str) -> str:
    if not MASTER.match(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no master such as local[2], yarn or spark://host:7077")
    return text


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def _consumer_option(text: str) -> tuple[str, str]:
    return _allowed(*_key_value(text))


def _consumer_config(text: str) -> tuple[tuple[str, str], ...]:
    """The settings in the file with that path."""
    try:
        properties = parse_properties(Path(text).read_text(encoding="utf-8"))
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be read: {error.strerror}") from None
    except ValueError:  # its message may hold a password
        raise argparse.ArgumentTypeError(f"{text} is no properties file in UTF-8") from None
    return tuple(_allowed(key, value) for key, value in properties.items())


def _allowed(key: str, value: str) -> tuple[str, str]:
    key = key.removeprefix("kafka.")
    if key in RESERVED_CONSUMER_OPTIONS:
        raise argparse.ArgumentTypeError(f"{key} cannot be set: {RESERVED_CONSUMER_OPTIONS[key]}")
    return key, value


def _partition_by(text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(","))
    if not set(columns) <= set(PARTITION_COLUMNS) or len(set(columns)) != len(columns):
        raise argparse.ArgumentTypeError(f"{text!r} is no choice of {', '.join(PARTITION_COLUMNS)}")
    return columns


def _timezone(text: str) -> str:
    try:
        _zone(text)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time zone such as Europe/Prague") from None
    return text


def _zone(name: str) -> tzinfo:
    """A time zone; UTC even on a machine without a time zone database."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _schema(text: str) -> str:
    """The text of a schema; Spark checks it."""
    try:
        is_file = Path(text).is_file()
    except OSError:  # a schema longer than a file name may be
        is_file = False
    return Path(text).read_text().strip() if is_file else text
