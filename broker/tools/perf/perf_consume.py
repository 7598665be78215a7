"""`odradek perf consume`: megabytes and records a second of a consumer in a group.

Kafka: ConsumerPerformance.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import command_parser
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.output import Output
from odradek.broker.tools.data.client.properties import CONSUMER_KEYS, Properties, gather
from odradek.broker.tools.data.client.running import run_with_client
from odradek.broker.tools.data.consume_options import fetch_config, group_config
from odradek.broker.tools.data.consumer.consumer import Consumer, ConsumerConfig, Subscription
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END
from odradek.broker.tools.data.producer.partitioner import random_below
from odradek.broker.tools.perf.statistics import MEGABYTE, consume_figures, consume_header, date_format

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.client.interrupts import Interrupts
    from odradek.broker.tools.data.consumer.fetcher import Chunk

CLIENT_ID: Final = "perf-consumer-client"
POLL_MS: Final = 100


def main(arguments: Sequence[str]) -> int:
    """Measure. Returns the exit status."""
    options, out = _parse(arguments)

    def make_work() -> tuple[_Work, Mapping[str, str]]:
        settings = gather(options.consumer_config, ())
        settings["group.id"] = options.group
        settings["max.partition.fetch.bytes"] = str(options.fetch_size)
        settings.setdefault("check.crcs", "false")
        return _Work(options, _config(settings, from_latest=options.from_latest), out), settings

    return run_with_client(make_work, options.bootstrap_server, client_id=CLIENT_ID, also=CONSUMER_KEYS)


def _config(settings: Mapping[str, str], *, from_latest: bool) -> ConsumerConfig:
    found = Properties(settings)
    start = END if from_latest else BEGINNING
    return ConsumerConfig(
        fetch=fetch_config(found, start), group=group_config(found, settings["group.id"]), start=start
    )


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("perf consume", "This tool is used to verify the consumer performance.")
    parser.add_argument("-b", "--bootstrap-server", "--broker-list", metavar="HOST:PORT,...")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--messages", type=int, required=True, metavar="N", help="stop after N records")
    parser.add_argument("--group", default=f"perf-consumer-{random_below(100_000)}")
    parser.add_argument("--fetch-size", type=int, default=MEGABYTE, metavar="BYTES", help="default 1048576")
    parser.add_argument("--from-latest", action="store_true", help="begin at the end without a committed offset")
    parser.add_argument("--timeout", type=int, default=10_000, metavar="MS", help="between records; default 10000")
    parser.add_argument("--reporting-interval", type=int, default=5_000, metavar="MS", help="default 5000")
    parser.add_argument("--show-detailed-stats", action="store_true", help="a line for each reporting interval")
    parser.add_argument("--date-format", default="yyyy-MM-dd HH:mm:ss:SSS", help="as SimpleDateFormat, figures only")
    parser.add_argument("--hide-header", action="store_true")
    parser.add_argument("--print-metrics", action="store_true", help="print the consumer's counters at the end")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    parser.add_argument("--consumer.config", "--command-config", dest="consumer_config", metavar="FILE")
    for name in ("--threads", "--num-fetch-threads", "--socket-buffer-size"):
        parser.add_argument(name, help=argparse.SUPPRESS)  # without an effect
    return parser


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, Output]:
    command = parser()
    options = command.parse_args(arguments)
    out = Output.in_lines(is_json=options.json)
    if options.reporting_interval <= 0:
        command.error("Reporting interval must be greater than 0.")
    if options.threads is not None or options.num_fetch_threads is not None:
        out.note(
            "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test"
        )
    return options, out


class _Work:
    """Reads and measures."""

    def __init__(self, options: argparse.Namespace, config: ConsumerConfig, out: Output) -> None:
        """Raises: CommandFailed."""
        self._options = options
        self._out = out
        self._config = config
        self._count = 0
        self._bytes = 0
        self._intervals: list[Mapping[str, object]] = []
        """For JSON."""
        try:
            self._date = date_format(options.date_format)
        except ValueError as error:
            raise CommandFailed(str(error)) from None

    async def __call__(self, client: DataClient, interrupts: Interrupts) -> None:
        options = self._options
        if not (options.hide_header or options.json):
            self._out.note(consume_header(detailed=options.show_detailed_stats))
        start_ms = client.clock.time_ms()
        consumer = Consumer(client, self._config, Subscription(topics=frozenset({options.topic})))
        try:
            await interrupts.during(consumer.start())
            await interrupts.during(self._read(client, consumer))
            end_ms = client.clock.time_ms()
        finally:
            await consumer.close()
        figures = consume_figures(self._bytes, self._count, end_ms - start_ms, consumer.rebalance_ms)
        value: dict[str, object] = {"start_time_ms": start_ms, "end_time_ms": end_ms, **figures._asdict()}
        lines = []
        if options.show_detailed_stats:
            value["intervals"] = self._intervals
        else:
            lines.append(f"{self._date(start_ms)}, {self._date(end_ms)}, {figures.fields}")
        if options.print_metrics:
            value["metrics"] = {"records-consumed-total": self._count, "bytes-consumed-total": self._bytes}
            lines.append(f"consumer-fetch-manager-metrics:records-consumed-total : {self._count}")
            lines.append(f"consumer-fetch-manager-metrics:bytes-consumed-total : {self._bytes}")
        self._out.document(value, lines)

    async def _read(self, client: DataClient, consumer: Consumer) -> None:
        options, clock = self._options, client.clock
        last_ms = report_ms = clock.time_ms()
        before = (0, 0, 0)
        while self._count < options.messages and clock.time_ms() - last_ms <= options.timeout:
            chunk = await consumer.poll(POLL_MS)
            now_ms = clock.time_ms()
            if chunk is not None:
                self._add(chunk)
                consumer.done(chunk)
                if chunk.records:
                    last_ms = now_ms
            if now_ms - report_ms >= options.reporting_interval:
                if options.show_detailed_stats:
                    self._report(now_ms, now_ms - report_ms, before, consumer.rebalance_ms)
                report_ms = now_ms
                before = (self._bytes, self._count, consumer.rebalance_ms)
        if self._count < options.messages:
            self._out.note(
                "WARNING: Exiting before consuming the expected number of messages: timeout "
                f"({options.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def _add(self, chunk: Chunk) -> None:
        self._count += len(chunk.records)
        self._bytes += sum(found.record.size_in_bytes for found in chunk.records)

    def _report(self, now_ms: int, elapsed_ms: int, before: tuple[int, int, int], rebalance_ms: int) -> None:
        size, count, rebalanced_ms = before
        figures = consume_figures(
            self._bytes, self._count, elapsed_ms, rebalance_ms - rebalanced_ms, before=(size, count)
        )
        self._out.note(f"{self._date(now_ms)}, 0, {figures.fields}")
        self._intervals.append({"time_ms": now_ms, **figures._asdict()})
