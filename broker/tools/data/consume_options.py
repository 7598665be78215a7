"""The options of `odradek consume`: those of Apache's console consumer, and kcat's short ones."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import command_parser
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.terminal_text import visible_bytes
from odradek.broker.tools.data.client.properties import Properties, gather
from odradek.broker.tools.data.common_options import add_cluster_options, delimiter
from odradek.broker.tools.data.consumer.consumer import ConsumerConfig, Subscription
from odradek.broker.tools.data.consumer.fetcher import FetchConfig
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, OffsetChoice, Origin, parse_offset
from odradek.broker.tools.data.records.deserializers import deserializer
from odradek.broker.tools.data.records.packed_format import packed_format
from odradek.broker.tools.data.records.record_format import (
    AS_IT_IS,
    FieldTexts,
    PrintedFields,
    RecordFormat,
    format_string,
    nothing,
    values_only,
)
from odradek.protocol.expressions import compile_expression
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.broker.tools.data.consumer.group_member import GroupConfig

_DESCRIPTION: Final = """\
Print records of topics. Without more options: the values of new records, each with a newline, until Ctrl-C.

With --group, partitions are shared with the other members of the group, and offsets are committed: of the records that
have been written to the output, every 5 seconds, before a rebalance, and at the end. After Ctrl-C, a closed pipe
(`| head`) or a kill, records may come again, but none is skipped.

Exit status: 0 at the end (-e, -c, --timeout-ms, a closed pipe), 1 after an error, 130 after Ctrl-C.
"""

_EXAMPLES: Final = r"""  odradek consume -t greetings -o beginning -e                   everything that is there
  odradek consume -t greetings --follow                          the last 10 records, and new ones, with colours
  odradek consume -t greetings -o -5 -e -f '%p %o %k: %s\n'      the last 5 of each partition, in a format
  odradek consume -t orders -o @1700000000000 -c 100 --json      100 records of that time (ms) or later, as JSON lines
  odradek consume -t a -t b --group printers                     as a member of a group
  odradek consume '^metrics-.*' -p 0 -o end                      partition 0 of all topics whose names match
  odradek consume --topic t --from-beginning --property print.key=true --property print.headers=true
  odradek consume -t photos -o 17 -p 0 -c 1 -f %s > photo.png    one value, byte for byte

offsets (-o): beginning, end, stored (with --group), N, -N (N before the end), @MS or s@MS (from that time), e@MS (to)
formats (-f): %s value, %S its length, %R length as 4 bytes, %k key, %K its length, %T timestamp, %h headers, %t topic,
              %p partition, %o offset, %%; \n \r \t \xNN
formatters:   DefaultMessageFormatter, LoggingMessageFormatter, NoOpMessageFormatter; of internal topics
              OffsetsMessageFormatter, GroupMetadataMessageFormatter, TransactionLogMessageFormatter
packed (-s):  b B h H i I q Q integers of 1, 2, 4 and 8 bytes (b h i q signed), c a byte, s the rest, $ the end,
              < > byte order (> at first); -s 'i s' prints four bytes as a number, a blank and the rest
"""
FOLLOWED_RECORDS: Final = 10
NULL: Final = b"NULL"


def consume_parser() -> argparse.ArgumentParser:
    """The options of `odradek consume`."""
    parser = command_parser("consume", _DESCRIPTION, examples=_EXAMPLES)
    add_cluster_options(parser, "consumer")
    _add_source(parser)
    _add_output(parser)
    return parser


def parse_consume(arguments: Sequence[str]) -> argparse.Namespace:
    """The options, checked against each other."""
    parser = consume_parser()
    options = parser.parse_args(arguments)
    options.topics = [*options.names, *options.topics]
    if options.include is not None:
        options.topics.append(f"^{options.include}")
    if not options.topics:
        parser.error("one of -t/--topic and --include is required")
    if options.group is not None and options.partitions:
        parser.error("Options group and partition cannot be specified together.")
    if options.from_beginning and options.offsets:
        parser.error("Options from-beginning and offset cannot be specified together.")
    for choice, _ in options.offsets:
        if choice is None:
            continue
        if options.group is None and choice.origin is Origin.STORED:
            parser.error("the offset 'stored' needs --group")
        if options.group is not None and choice.origin not in (Origin.STORED, Origin.BEGINNING, Origin.END):
            parser.error("with --group, an offset is beginning, end or stored")
    return options


def _add_source(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is read")
    group.add_argument("names", nargs="*", metavar="TOPIC", help="as --topic; ^... is a regular expression")
    group.add_argument(
        "-t", "--topic", dest="topics", action="append", default=[], metavar="TOPIC", help="may be repeated"
    )
    group.add_argument("--include", "--whitelist", metavar="REGEX", help="all topics whose whole name matches")
    group.add_argument(
        "-p",
        "--partition",
        dest="partitions",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="may be repeated",
    )
    group.add_argument(
        "-o", "--offset", dest="offsets", type=_offset, action="append", default=[], metavar="OFFSET",
        help="where to begin (default end), or with e@MS to end; see below",
    )  # fmt: skip
    group.add_argument("--from-beginning", action="store_true", help="as -o beginning")
    group.add_argument("--follow", action="store_true", help="as -o -10 --pretty, and go on")
    group.add_argument("-e", "--exit", action="store_true", help="stop at what is the end now")
    group.add_argument("-c", "--count", "--max-messages", type=int, metavar="N", help="stop after N records")
    group.add_argument("--timeout-ms", type=int, metavar="MS", help="stop when no record comes for this time")
    group.add_argument("-G", "--group", help="consume as a member of this group")
    group.add_argument(
        "--max-decompressed-bytes",
        type=int,
        default=MAX_DECOMPRESSED_BYTES,
        metavar="BYTES",
        help=f"refuse a batch that becomes larger; default {MAX_DECOMPRESSED_BYTES}",
    )
    group.add_argument(
        "--isolation-level", choices=("read_uncommitted", "read_committed"), help="default read_uncommitted"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is printed")
    form = group.add_mutually_exclusive_group()
    form.add_argument("-f", "--format", help="a format string; see below")
    form.add_argument("-J", "--json", action="store_true", help="a JSON object in each line; `produce --json` reads it")
    form.add_argument("--pretty", action="store_true", help="lines for people: time, place, key, headers, value")
    form.add_argument("--formatter", metavar="CLASS", help="a formatter of Apache's; see below")
    group.add_argument(
        "-s", "--packed", action="append", default=[], metavar="[key=|value=]FORMAT",
        help="print packed numbers of keys and values (without effect on --json); see below",
    )  # fmt: skip
    group.add_argument(
        "-D", "--delimiter", type=delimiter, default=b"\n", metavar="D", help=r"after a record; default \n"
    )
    group.add_argument(
        "-K", "--key-delimiter", type=delimiter, metavar="D", help="print the key and D before the value"
    )
    group.add_argument("-Z", "--null", action="store_true", help="print NULL for a null key or value")
    group.add_argument(
        "--property", "--formatter-property", dest="formatter_properties", action="append", default=[],
        metavar="NAME=VALUE",
        help="Apache's: print.timestamp, print.partition, print.offset, print.headers, print.key, print.value, "
        "key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, "
        "headers.deserializer",
    )  # fmt: skip
    group.add_argument("--formatter-config", metavar="FILE", help="a file of these properties")
    group.add_argument("--key-deserializer", metavar="CLASS", help="such as LongDeserializer")
    group.add_argument("--value-deserializer", metavar="CLASS", help="such as LongDeserializer")
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="of --pretty; default auto")
    group.add_argument("--skip-message-on-error", action="store_true", help="skip a record that cannot be printed")
    group.add_argument("-q", "--quiet", action="store_true", help="no count of records on stderr at the end")
    group.add_argument("-u", "--unbuffered", action="store_true", help=argparse.SUPPRESS)  # nothing is held back
    group.add_argument("--enable-systest-events", action="store_true", help=argparse.SUPPRESS)


def _offset(text: str) -> tuple[OffsetChoice | None, int | None]:
    try:
        return parse_offset(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def subscription(options: argparse.Namespace) -> Subscription:
    """The topics and partitions. Raises: CommandFailed for an invalid regular expression."""
    patterns = []
    for topic in options.topics:
        if topic.startswith("^"):
            try:
                patterns.append(compile_expression(topic))
            except ValueError as error:
                raise CommandFailed(f"{topic} is no regular expression: {error}") from None
    return Subscription(
        topics=frozenset(topic for topic in options.topics if not topic.startswith("^")),
        patterns=tuple(patterns),
        partitions=frozenset(options.partitions) or None,
    )


def consumer_settings(options: argparse.Namespace) -> dict[str, str]:
    """Settings by Apache's names. Options come before properties, properties before the file. Raises: CommandFailed."""
    settings = gather(options.command_config, options.properties)
    if options.isolation_level is not None:
        settings["isolation.level"] = options.isolation_level
    if options.group is not None:
        if settings.get("group.id", options.group) != options.group:
            raise CommandFailed("the group ids of --group and of the properties differ")
        settings["group.id"] = options.group
    reset = settings.get("auto.offset.reset")
    if options.from_beginning and reset not in (None, "earliest"):
        raise CommandFailed(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
    return settings


def consumer_config(settings: Mapping[str, str], options: argparse.Namespace) -> ConsumerConfig:
    """The consumer's configuration. Raises: CommandFailed."""
    found = Properties(settings)
    reset = {"earliest": BEGINNING, "latest": END, "none": None}[
        found.choice("auto.offset.reset", "latest", ("earliest", "latest", "none"))
    ]
    if options.from_beginning:
        reset = BEGINNING
    starts = [choice for choice, _ in options.offsets if choice is not None]
    start = next((choice for choice in starts if choice.origin is not Origin.STORED), reset or END)
    if options.follow and not starts and not options.from_beginning:
        start = OffsetChoice(Origin.TAIL, FOLLOWED_RECORDS)
    ends = [OffsetChoice(Origin.TIMESTAMP, timestamp) for _, timestamp in options.offsets if timestamp is not None]
    group_id = None if options.partitions else settings.get("group.id")
    return ConsumerConfig(
        fetch=fetch_config(found, reset)._replace(max_decompressed_bytes=options.max_decompressed_bytes),
        group=None if group_id is None else group_config(found, group_id),
        enable_auto_commit=found.boolean("enable.auto.commit", True),
        auto_commit_interval_ms=found.number("auto.commit.interval.ms", 5_000),
        start=start,
        ends=(*ends, *((END,) if options.exit else ())),
    )


def fetch_config(found: Properties, reset: OffsetChoice | None) -> FetchConfig:
    """The configuration of fetches. Raises: CommandFailed."""
    defaults = FetchConfig()
    isolation = found.choice("isolation.level", "read_uncommitted", ("read_uncommitted", "read_committed"))
    return FetchConfig(
        auto_offset_reset=reset,
        check_crcs=found.boolean("check.crcs", True),
        client_rack=found.text("client.rack", ""),
        fetch_max_bytes=found.number("fetch.max.bytes", defaults.fetch_max_bytes),
        fetch_max_wait_ms=found.number("fetch.max.wait.ms", defaults.fetch_max_wait_ms),
        fetch_min_bytes=found.number("fetch.min.bytes", defaults.fetch_min_bytes),
        max_partition_fetch_bytes=found.number("max.partition.fetch.bytes", defaults.max_partition_fetch_bytes),
        max_poll_records=found.number("max.poll.records", defaults.max_poll_records, least=1),
        read_committed=isolation == "read_committed",
    )


def group_config(found: Properties, group_id: str) -> GroupConfig:
    """The configuration of a member. Raises: CommandFailed."""
    from odradek.broker.tools.data.consumer.assignors import assignor_names
    from odradek.broker.tools.data.consumer.group_member import GroupConfig

    defaults = GroupConfig(group_id=group_id)
    try:
        assignors = assignor_names(found.text("partition.assignment.strategy", ",".join(defaults.assignors)))
    except ValueError as error:
        raise CommandFailed(f"partition.assignment.strategy: {error}") from None
    return GroupConfig(
        assignors=assignors,
        group_id=group_id,
        group_instance_id=found.text("group.instance.id", "") or None,
        heartbeat_interval_ms=found.number("heartbeat.interval.ms", defaults.heartbeat_interval_ms, least=1),
        max_poll_interval_ms=found.number("max.poll.interval.ms", defaults.max_poll_interval_ms, least=1),
        session_timeout_ms=found.number("session.timeout.ms", defaults.session_timeout_ms, least=1),
    )


def record_format(options: argparse.Namespace) -> RecordFormat:
    """How a record is printed. Raises: CommandFailed."""
    null = NULL if options.null else b""
    shown = visible_bytes if sys.stdout.isatty() else bytes
    try:
        texts = packed_fields(options.packed)
        if options.format is not None:
            return format_string(options.format, null, shown, texts)
        if options.json:
            from odradek.broker.tools.data.records.json_lines import json_line  # the plain case does not pay for it

            return json_line
        if options.pretty or options.follow:
            from odradek.broker.tools.data.records.pretty_line import pretty_line

            return pretty_line(with_colours=_with_colours(options.color), texts=texts)
        formatter = _class_name(options.formatter or "")
        if formatter == "NoOpMessageFormatter":
            return nothing
        properties = _formatter_properties(options)
        if not properties and not formatter:
            return values_only(options.delimiter, null, options.key_delimiter, shown, texts)
        if formatter not in ("", "DefaultMessageFormatter", "LoggingMessageFormatter"):
            from odradek.broker.tools.data.records.internal_records import FORMATS  # as json_lines above

            if formatter in FORMATS:
                return FORMATS[formatter].line
            raise ValueError(f"--formatter {options.formatter} is a Java class that is not known here")
        if options.packed:
            raise ValueError("-s cannot be combined with --formatter, --property and deserializers")
        return printed_fields(properties)._replace(shown=shown).line
    except ValueError as error:
        raise CommandFailed(str(error)) from None


def _class_name(name: str) -> str:
    """Of a class of Java, without its package and the class around it, which older releases had."""
    return name.rpartition(".")[2].rpartition("$")[2]


def packed_fields(formats: Iterable[str]) -> FieldTexts:
    """The fields that -s unpacks; the last format of a field counts. Raises: ValueError."""
    texts = AS_IT_IS
    for text in formats:
        field, found, form = text.partition("=")
        if found and field in texts._fields:
            texts = texts._replace(**{field: packed_format(field, form)})
        else:
            texts = FieldTexts(packed_format("key", text), packed_format("value", text))
    return texts


def _formatter_properties(options: argparse.Namespace) -> dict[str, str]:
    found = gather(options.formatter_config, ())
    for pair in options.formatter_properties:
        name, _, value = pair.partition("=")
        found[name] = value  # with its blanks: a separator may be one
    if options.key_deserializer is not None:
        found["key.deserializer"] = options.key_deserializer
    if options.value_deserializer is not None:
        found["value.deserializer"] = options.value_deserializer
    return found


def printed_fields(properties: Mapping[str, str]) -> PrintedFields:
    """Apache's formatter with these properties. Raises: ValueError."""
    flags = ("timestamp", "partition", "offset", "headers", "key", "value")
    texts = ("key.separator", "line.separator", "headers.separator", "null.literal")
    values: dict[str, object] = {}
    for name, value in properties.items():
        field = name.replace(".", "_")
        if name.startswith("print.") and name.removeprefix("print.") in flags:
            values[field] = value.strip().lower() == "true"
        elif name in texts:
            values[field] = value.encode()
        elif name in ("key.deserializer", "value.deserializer", "headers.deserializer"):
            values[name.replace(".deserializer", "_text")] = deserializer(value)
        else:
            raise ValueError(f"--property: {name} is not known")
    return PrintedFields(**values)  # type: ignore[arg-type]


def _with_colours(choice: str) -> bool:
    if choice == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return choice == "always"
