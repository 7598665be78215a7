"""The options that jobs share: groups of arguments, what their texts mean, and what is made of them.

Every job has the same names for the same things. An argument type raises ArgumentTypeError with one line; argparse
ends the process with it and status 2. Everything here is plain values: no Spark, no sockets, no files but the
properties file.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from odradek.storage.disk.properties_file import read_properties
from spark_jobs.common.job import RunOptions
from spark_jobs.common.kafka_options import KafkaConnection

EARLIEST, LATEST = "earliest", "latest"
EARLIEST_OFFSET, LATEST_OFFSET = -2, -1
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_TRIGGER_MS = 5_000
LOG_LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG")
INTERVAL_UNITS_MS = (
    (re.compile(r"(\d+)\s*(?:ms|milliseconds?)"), 1),
    (re.compile(r"(\d+)\s*(?:s|seconds?)"), 1_000),
    (re.compile(r"(\d+)\s*(?:m|minutes?)"), 60_000),
    (re.compile(r"(\d+)\s*(?:h|hours?)"), 3_600_000),
)
MASTER = re.compile(r"local(\[.+\])?$|local-cluster\[.+\]$|yarn$|spark://|k8s://")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# Spark decides these itself, or an option of ours does.
RESERVED_PROPERTIES = {
    "auto.offset.reset": "use --starting-offsets",
    "bootstrap.servers": "use --bootstrap-servers",
    "enable.auto.commit": "Spark keeps the offsets in the checkpoint",
    "interceptor.classes": "Spark forbids it",
    "key.deserializer": "Spark reads bytes",
    "key.serializer": "Spark writes bytes",
    "value.deserializer": "Spark reads bytes",
    "value.serializer": "Spark writes bytes",
}


def job_parser(name: str, description: str, *examples: str) -> argparse.ArgumentParser:
    """A parser for a job: what it does in two sentences, and examples at the end of its help."""
    return argparse.ArgumentParser(
        prog=name,
        description=description,
        epilog="\n".join(["examples:", *(f"  python -m spark_jobs.{name} {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_connection_arguments(
    parser: argparse.ArgumentParser, *, other: bool = False, older_names: Sequence[str] = ()
) -> argparse._ArgumentGroup:
    """`--bootstrap-servers` and `--command-config`, with `other-` in front for the second of two clusters.

    `older_names`: accepted for `--command-config`, and not shown.
    """
    group = parser.add_argument_group("the other cluster" if other else "the cluster")
    prefix = "--other-" if other else "--"
    default = None if other else DEFAULT_BOOTSTRAP
    group.add_argument(
        f"{prefix}bootstrap-servers",
        default=default,
        metavar="HOST:PORT,...",
        help="default: the same cluster" if other else "default: %(default)s",
    )
    config = f"{prefix}command-config"
    group.add_argument(
        config,
        type=properties_file,
        default=(),
        metavar="FILE",
        help="a properties file with settings of Kafka's clients, such as security.protocol and sasl.jaas.config: "
        "passwords in it are in no list of processes",
    )
    for name in older_names:
        group.add_argument(name, type=properties_file, dest=_name(config), help=argparse.SUPPRESS)
    return group


def connection_of(args: argparse.Namespace, *, other: bool = False) -> KafkaConnection:
    """The cluster of `add_connection_arguments`; the other one is the same as the first if it is not named."""
    if other and args.other_bootstrap_servers is not None:
        return KafkaConnection(
            bootstrap_servers=args.other_bootstrap_servers, properties=tuple(args.other_command_config)
        )
    return KafkaConnection(bootstrap_servers=args.bootstrap_servers, properties=tuple(args.command_config))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRange:
    """Where reading begins and ends in each partition."""

    starting_offsets: str = EARLIEST
    starting_timestamp_ms: int | None = None  # instead of the offsets
    ending_offsets: str | None = None  # None, and no timestamp: the end of the log, or never
    ending_timestamp_ms: int | None = None

    def source_options(self) -> dict[str, str]:
        """The options of Spark's kafka source; those of the end are for batch queries."""
        options: dict[str, str] = {}
        if self.starting_timestamp_ms is None:
            options["startingOffsets"] = self.starting_offsets
        else:
            options["startingTimestamp"] = str(self.starting_timestamp_ms)
            # A partition with no record that late begins at its end, where the first such record will be.
            options["startingOffsetsByTimestampStrategy"] = LATEST
        if self.ending_timestamp_ms is not None:
            options["endingTimestamp"] = str(self.ending_timestamp_ms)
        elif self.ending_offsets is not None:
            options["endingOffsets"] = self.ending_offsets
        return options


def add_range_arguments(parser: argparse.ArgumentParser, *, ending: bool = True) -> argparse._ArgumentGroup:
    """Where reading begins and, for batch jobs, ends; and `--timezone`. `range_of` reads them."""
    group = parser.add_argument_group("where reading begins" + (" and ends" if ending else ""))
    begin = group.add_mutually_exclusive_group()
    begin.add_argument(
        "--starting-offsets",
        type=starting_offsets,
        metavar="earliest|latest|JSON",
        help="where the first run begins (a later one goes on from its checkpoint, if it has one); JSON names every "
        'partition: {"events": {"0": 23, "1": -2}}, -2 is earliest and -1 latest (default: earliest)',
    )
    begin.add_argument(
        "--starting-timestamp",
        metavar="TIME",
        help="begin with the first record of this time or later: ISO 8601 (in --timezone, unless it says) or epoch ms",
    )
    if ending:
        end = group.add_mutually_exclusive_group()
        end.add_argument(
            "--ending-offsets", type=ending_offsets, metavar="latest|JSON", help="where it ends (default: latest)"
        )
        end.add_argument("--ending-timestamp", metavar="TIME", help="end before the first record of this time or later")
    add_timezone_argument(group)
    return group


def add_timezone_argument(container: argparse._ActionsContainer) -> None:
    """`--timezone`, in which `moment_of` reads times."""
    container.add_argument(
        "--timezone", type=timezone, default="UTC", metavar="ZONE", help="of times and dates (default: %(default)s)"
    )


def range_of(parser: argparse.ArgumentParser, args: argparse.Namespace) -> ReadRange:
    """What the options of `add_range_arguments` say. A time that is none ends the process with status 2."""
    return ReadRange(
        starting_offsets=args.starting_offsets or EARLIEST,
        starting_timestamp_ms=moment_of(parser, args, "--starting-timestamp"),
        ending_offsets=getattr(args, "ending_offsets", None),
        ending_timestamp_ms=moment_of(parser, args, "--ending-timestamp"),
    )


def moment_of(parser: argparse.ArgumentParser, args: argparse.Namespace, option: str) -> int | None:
    """The time of an option, in ms, read in `--timezone`. A text that is no time ends the process with status 2."""
    text = getattr(args, _name(option), None)
    try:
        return None if text is None else timestamp_ms(text, args.timezone)
    except ValueError as error:
        parser.error(f"argument {option}: {error}")


def add_running_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """`--master`, `--conf` and `--log-level`; `run_options_of` reads them."""
    group = parser.add_argument_group("how it runs")
    group.add_argument("--master", type=master, help="Spark master (default: local[*], or what spark-submit says)")
    group.add_argument(
        "--conf", type=key_value, action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; repeatable"
    )
    group.add_argument(
        "--log-level", choices=LOG_LEVELS, default="FATAL", help="what Spark itself logs (default: %(default)s)"
    )
    return group


def run_options_of(args: argparse.Namespace) -> RunOptions:
    return RunOptions(master=args.master, conf=tuple(args.conf), log_level=args.log_level)


def add_trigger_arguments(container: argparse._ActionsContainer) -> None:
    """`--trigger` or `--available-now`; `trigger_ms_of` reads them."""
    pace = container.add_mutually_exclusive_group()
    pace.add_argument(
        "--trigger",
        type=interval_ms,
        default=DEFAULT_TRIGGER_MS,
        metavar="INTERVAL",
        help='start a batch this often, "30 seconds" (default: 5 seconds; 0s: as soon as there is data)',
    )
    pace.add_argument("--available-now", action="store_true", help="process what is there now, then end")


def trigger_ms_of(args: argparse.Namespace) -> int | None:
    """The interval of the batches; None: all that is there now, then end."""
    return None if args.available_now else args.trigger


def check_written(parser: argparse.ArgumentParser, args: argparse.Namespace, option: str) -> None:
    """End the process with status 2 if an option is missing that only a dry run does without."""
    if getattr(args, _name(option)) is None and not args.dry_run:
        parser.error(f"the following arguments are required: {option}")


def add_topic_creation_arguments(container: argparse._ActionsContainer, partitions: str) -> None:
    """`--create-topic` and `--topic-config`; `partitions` says how many partitions a new topic gets."""
    container.add_argument(
        "--create-topic", action="store_true", help=f"create a topic that is not there, with {partitions}"
    )
    container.add_argument(
        "--topic-config",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a config of the topics that are created; repeatable",
    )


def topics(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        topic(name)
    return names


def topic(text: str) -> str:
    if not TOPIC.fullmatch(text) or text in (".", ".."):
        raise argparse.ArgumentTypeError(f"{text!r} is no topic name")
    return text


def java_pattern(text: str) -> str:
    """Java's regular expressions are not Python's: only the empty one is surely a mistake."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty pattern")
    return text


def starting_offsets(text: str) -> str:
    if text in (EARLIEST, LATEST):
        return text
    return _offsets(text, f"neither {EARLIEST}, {LATEST} nor JSON", EARLIEST_OFFSET)


def ending_offsets(text: str) -> str:
    if text == LATEST:
        return text
    return _offsets(text, f"neither {LATEST} nor JSON", LATEST_OFFSET)


def _offsets(text: str, otherwise: str, least: int) -> str:
    try:
        offsets = json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is {otherwise}") from None
    if not isinstance(offsets, dict) or not all(_are_offsets(of_topic, least) for of_topic in offsets.values()):
        raise argparse.ArgumentTypeError(f'{text!r} is not of the form {{"topic": {{"0": 23}}}}')
    return text


def _are_offsets(of_topic: object, least: int) -> bool:
    return (
        isinstance(of_topic, dict)
        and bool(of_topic)
        and all(partition.isdecimal() for partition in of_topic)
        and all(isinstance(offset, int) and offset >= least for offset in of_topic.values())
    )


def timestamp_ms(text: str, zone: str) -> int:
    """Milliseconds since the epoch, of ISO 8601 or of such a number. Raises: ValueError."""
    if text.isdecimal():
        return int(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_of(zone))
    since_epoch = moment - datetime(1970, 1, 1, tzinfo=UTC)
    if since_epoch.days < 0:
        raise ValueError(f"{text} is before 1970")
    return since_epoch.days * 86_400_000 + since_epoch.seconds * 1_000 + since_epoch.microseconds // 1_000


def interval_ms(text: str) -> int:
    for pattern, unit_ms in INTERVAL_UNITS_MS:
        if found := pattern.fullmatch(text.strip()):
            return int(found[1]) * unit_ms
    raise argparse.ArgumentTypeError(f'{text!r} is no interval such as "30 seconds"')


def some_interval_ms(text: str) -> int:
    milliseconds = interval_ms(text)
    if milliseconds == 0:
        raise argparse.ArgumentTypeError("no time at all")
    return milliseconds


def count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def master(text: str) -> str:
    if not MASTER.match(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no master such as local[2], yarn or spark://host:7077")
    return text


def key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def client_property(text: str) -> tuple[str, str]:
    """One setting of Kafka's clients, `KEY=VALUE`."""
    return _allowed(*key_value(text))


def properties_file(text: str) -> tuple[tuple[str, str], ...]:
    """The settings in the file with that path."""
    try:
        properties = read_properties(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be read: {error.strerror}") from None
    except ValueError:  # its message may hold a password
        raise argparse.ArgumentTypeError(f"{text} is no properties file") from None
    return tuple(_allowed(key, value) for key, value in properties.items())


def _allowed(key: str, value: str) -> tuple[str, str]:
    key = key.removeprefix("kafka.")
    if key in RESERVED_PROPERTIES:
        raise argparse.ArgumentTypeError(f"{key} cannot be set: {RESERVED_PROPERTIES[key]}")
    return key, value


def timezone(text: str) -> str:
    try:
        zone_of(text)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time zone such as Europe/Prague") from None
    return text


def zone_of(name: str) -> tzinfo:
    """A time zone; UTC even on a machine without a time zone database."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _name(option: str) -> str:
    """The name of an option among argparse's values."""
    return option.removeprefix("--").replace("-", "_")
