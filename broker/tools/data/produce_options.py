"""The options of `odradek produce`: those of Apache's console producer, and kcat's short ones."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import command_parser
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.client.properties import CODECS, Properties, gather
from odradek.broker.tools.data.common_options import add_cluster_options, delimiter
from odradek.broker.tools.data.producer.partitioner import PARTITIONERS
from odradek.broker.tools.data.producer.producer import ProducerConfig
from odradek.broker.tools.data.records.record_reader import LineFormat
from odradek.protocol.records.layout import MAX_INT32, MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DESCRIPTION: Final = """\
Write records to a topic. Each line of the input is the value of a record; with -K a line is KEY DELIMITER VALUE.
Records are written with acks=all and idempotence, so that none is lost, doubled or reordered by retries.

Exit status: 0 when all records are acknowledged, 1 when one is not (the command stops there), 130 after Ctrl-C.
Ctrl-C stops reading, and what was read is still written; an open transaction is aborted. A second Ctrl-C ends at once.
"""

_EXAMPLES: Final = r"""  echo hello | odradek produce -t greetings
  echo 'k:hello' | odradek produce -t greetings -K :
  odradek produce -t events -K '\t' -z zstd events.tsv               each line of a file, compressed
  odradek produce -t images -k logo --whole-file logo.png            a file is one record
  echo 'h1:v1,h2:v2|value' | odradek produce -t t --property parse.headers=true --property 'headers.delimiter=|'
  echo 'k:' | odradek produce -t users -K : -Z                       a tombstone: a key whose value is null
  odradek consume -t a --json -o beginning -e | odradek produce -t b --json       copies keys, headers, timestamps
  odradek produce -t t --transactional-id import --transaction-per-file a.txt b.txt
"""

_DEFAULTS: Final = {"linger.ms": "5", "batch.size": "131072"}
"""Larger batches than those of Java's producer: the input of a pipe comes in large pieces."""


def produce_parser() -> argparse.ArgumentParser:
    """The options of `odradek produce`."""
    parser = command_parser("produce", _DESCRIPTION, examples=_EXAMPLES)
    parser.add_argument("files", nargs="*", metavar="FILE", help="read these files instead of standard input")
    parser.add_argument("-t", "--topic", help="required, unless the records of --json name theirs")
    add_cluster_options(parser, "producer")
    _add_records(parser)
    _add_delivery(parser)
    _add_transactions(parser)
    return parser


def parse_produce(arguments: Sequence[str]) -> argparse.Namespace:
    """The options, checked against each other."""
    parser = produce_parser()
    options = parser.parse_args(arguments)
    if options.topic is None and not options.json:
        parser.error("the following arguments are required: -t/--topic")
    if options.whole_file and not options.files:
        parser.error("--whole-file needs files")
    if options.transactional_id is None and (options.transaction_size or options.transaction_per_file):
        parser.error("--transaction-size and --transaction-per-file need --transactional-id")
    return options


def _add_records(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("records")
    group.add_argument(
        "-K", "--key-delimiter", type=delimiter, metavar="D", help="lines are KEY D VALUE, or VALUE alone"
    )
    group.add_argument(
        "-D", "--delimiter", type=delimiter, default=b"\n", metavar="D", help=r"ends a record; default \n"
    )
    group.add_argument("-J", "--json", action="store_true", help="lines are JSON, as `consume --json` prints it")
    group.add_argument("--whole-file", action="store_true", help="each FILE is the value of one record")
    group.add_argument("-k", "--key", help="the key of all records")
    group.add_argument(
        "-H", "--header", dest="headers", action="append", default=[], metavar="NAME=VALUE",
        help="a header of all records; NAME alone: with a null value",
    )  # fmt: skip
    group.add_argument("-p", "--partition", type=int, help="the partition of all records; -1: the partitioner chooses")
    group.add_argument("--keep-partitions", action="store_true", help="with --json: keep the partition of each record")
    group.add_argument("--timestamp", type=_timestamp, metavar="MS", help="the timestamp of all records; default: now")
    group.add_argument("-Z", "--null", action="store_true", help="an empty key or value is null")
    group.add_argument("-c", "--count", type=int, metavar="N", help="stop after N records")
    group.add_argument("-T", "--tee", action="store_true", help="copy the input to standard output")
    group.add_argument(
        "--property", "--reader-property", dest="reader_properties", action="append", default=[], metavar="NAME=VALUE",
        help="Apache's: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, "
        "headers.key.separator, null.marker, ignore.error",
    )  # fmt: skip
    group.add_argument("--reader-config", metavar="FILE", help="a file of these properties")


def _add_delivery(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("delivery")
    group.add_argument(
        "-z", "--compression-codec", nargs="?", const="gzip", choices=CODECS, help="default none; without a name: gzip"
    )
    group.add_argument("--compression-level", type=int, metavar="N", help="default: the codec's own")
    group.add_argument("--acks", "--request-required-acks", choices=("all", "-1", "0", "1"), help="default all")
    group.add_argument("--partitioner", choices=PARTITIONERS, default="murmur2", help="default murmur2, as in Java")
    group.add_argument(
        "--batch-size", "--max-partition-memory-bytes", type=int, metavar="BYTES", help="default 131072 for a partition"
    )
    group.add_argument("--linger", "--timeout", type=int, metavar="MS", help="wait so long for a full batch; default 5")
    group.add_argument("--sync", action="store_true", help="wait for each record before the next")
    group.add_argument("--delivery-timeout-ms", type=int, metavar="MS", help="give up after; default 120000")
    group.add_argument("--request-timeout-ms", type=int, metavar="MS", help="default 30000")
    group.add_argument("--max-memory-bytes", type=int, metavar="BYTES", help="records in memory; default 33554432")
    group.add_argument("--max-block-ms", type=int, metavar="MS", help="wait so long for a topic; default 60000")
    group.add_argument("--retry-backoff-ms", type=int, metavar="MS", help="default 100")
    for name in ("--message-send-max-retries", "--metadata-expiry-ms", "--socket-buffer-size", "--line-reader"):
        group.add_argument(name, help=argparse.SUPPRESS)  # Apache's options without an effect here
    group.add_argument("-v", "--verbose", action="store_true", help="say at the end how many records were written")


def _add_transactions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("transactions")
    group.add_argument("--transactional-id", metavar="ID", help="one transaction for the whole input")
    group.add_argument("--transaction-size", type=int, metavar="N", help="commit after each N records")
    group.add_argument("--transaction-per-file", action="store_true", help="commit after each FILE")
    group.add_argument("--transaction-timeout-ms", type=int, metavar="MS", help="default 60000")


def _timestamp(text: str) -> int:
    timestamp = int(text)
    if not 0 <= timestamp <= MAX_INT64:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {MAX_INT64}")
    return timestamp


def producer_settings(options: argparse.Namespace) -> dict[str, str]:
    """Settings by Apache's names. Options come before properties, properties before the file. Raises: CommandFailed."""
    settings = _DEFAULTS | gather(options.command_config, options.properties)
    given = {
        "acks": options.acks,
        "batch.size": options.batch_size,
        "buffer.memory": options.max_memory_bytes,
        "compression.type": options.compression_codec,
        "delivery.timeout.ms": options.delivery_timeout_ms,
        "linger.ms": options.linger,
        "max.block.ms": options.max_block_ms,
        "request.timeout.ms": options.request_timeout_ms,
        "retry.backoff.ms": options.retry_backoff_ms,
        "transaction.timeout.ms": options.transaction_timeout_ms,
        "transactional.id": options.transactional_id,
    }
    settings |= {name: str(value) for name, value in given.items() if value is not None}
    if options.compression_level is not None:
        settings[f"compression.{settings.get('compression.type', 'none')}.level"] = str(options.compression_level)
    return settings


def producer_config(settings: Mapping[str, str]) -> ProducerConfig:
    """The producer's configuration. Raises: CommandFailed."""
    found = Properties(settings)
    codec, level = found.compression("none")
    defaults = ProducerConfig()
    linger_ms = min(found.number("linger.ms", defaults.linger_ms), MAX_INT32)
    request_timeout_ms = found.number("request.timeout.ms", defaults.request_timeout_ms, least=1)
    # Kafka: KafkaProducer.configureDeliveryTimeout. Else a batch could expire while it lingers.
    shortest_ms = min(linger_ms + request_timeout_ms, MAX_INT32)
    delivery_timeout_ms = max(defaults.delivery_timeout_ms, shortest_ms)
    if found.number("delivery.timeout.ms", delivery_timeout_ms) < shortest_ms:
        raise CommandFailed("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
    config = ProducerConfig(
        acks=found.acks(defaults.acks),
        batch_size=found.number("batch.size", defaults.batch_size),
        buffer_memory=found.number("buffer.memory", defaults.buffer_memory, least=1),
        compression_type=codec,
        compression_level=level,
        delivery_timeout_ms=found.number("delivery.timeout.ms", delivery_timeout_ms),
        enable_idempotence=found.boolean("enable.idempotence", defaults.enable_idempotence),
        linger_ms=linger_ms,
        max_block_ms=found.number("max.block.ms", defaults.max_block_ms),
        max_request_size=found.number("max.request.size", defaults.max_request_size),
        request_timeout_ms=request_timeout_ms,
        transactional_id=settings.get("transactional.id"),
        transaction_timeout_ms=found.number("transaction.timeout.ms", defaults.transaction_timeout_ms, least=1),
    )
    if config.acks != -1 and config.enable_idempotence and "enable.idempotence" in settings:
        raise CommandFailed(
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence."
        )
    # Kafka: ProducerConfig.postProcessAndValidateIdempotenceConfigs. Without acks=all there is no idempotence.
    if config.transactional_id is not None and not (config.enable_idempotence and config.acks == -1):
        raise CommandFailed("Cannot set a transactional.id without also enabling idempotence.")
    return config


def line_format(options: argparse.Namespace) -> LineFormat:
    """How lines are divided. Raises: CommandFailed."""
    found = gather(options.reader_config, ())
    for pair in options.reader_properties:
        name, _, value = pair.partition("=")
        found[name] = value  # with its blanks: a separator may be one
    names = {"parse.key", "parse.headers", "ignore.error"}
    texts = {"key.separator", "headers.delimiter", "headers.separator", "headers.key.separator", "null.marker"}
    unknown = found.keys() - names - texts
    if unknown:
        raise CommandFailed(f"--property: {', '.join(sorted(unknown))} is not known; known are {sorted(names | texts)}")
    values: dict[str, object] = {_field(name): found[name].strip().lower() == "true" for name in names & found.keys()}
    values |= {_field(name): found[name].encode() for name in texts & found.keys()}
    if options.key_delimiter is not None:
        values |= {"parse_key": True, "key_separator": options.key_delimiter, "ignore_error": True}
    try:
        form = LineFormat(**values, empty_is_null=options.null)  # type: ignore[arg-type]
        form.check()
    except ValueError as error:
        raise CommandFailed(str(error)) from None
    return form


def _field(name: str) -> str:
    return name.replace(".", "_")
