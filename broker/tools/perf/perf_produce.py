"""`odradek perf produce`: records a second, and the time until a record is acknowledged.

Kafka: ProducerPerformance, ThroughputThrottler.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.arguments import command_parser
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.output import Output
from odradek.broker.tools.data.client.properties import PRODUCER_KEYS, gather
from odradek.broker.tools.data.client.running import run_with_client
from odradek.broker.tools.data.produce_options import producer_config
from odradek.broker.tools.data.producer.partitioner import PARTITIONERS, random_below
from odradek.broker.tools.data.producer.producer import Producer, ProducerConfig
from odradek.broker.tools.data.records.record_reader import InputRecord
from odradek.broker.tools.perf.payloads import Payload, file_payload, monotonic_payload, random_payload
from odradek.broker.tools.perf.statistics import ProduceStatistics

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.client.interrupts import Interrupts
    from odradek.broker.tools.data.producer.accumulator import Batch
    from odradek.timer.clock import Clock

CLIENT_ID: Final = "perf-producer-client"
SHORTEST_PAUSE_MS: Final = 2
"""Kafka: ThroughputThrottler.MIN_SLEEP_NS."""


def main(arguments: Sequence[str]) -> int:
    """Measure. Returns the exit status."""
    options = parser().parse_args(arguments)
    out = Output.in_lines(is_json=options.json)

    def make_work() -> tuple[_Work, Mapping[str, str]]:
        settings = gather(options.producer_config, options.producer_props)
        if options.bootstrap_server is None and "bootstrap.servers" not in settings and not settings:
            raise CommandFailed("Either --producer-props or --producer.config must be specified.")
        if options.transaction_duration_ms > 0:
            settings["transactional.id"] = options.transactional_id
        elif "transactional.id" in settings:
            raise CommandFailed("transactional.id needs --transaction-duration-ms; its value is --transactional-id.")
        return _Work(options, producer_config(settings), _payload(options, out), out), settings

    return run_with_client(make_work, options.bootstrap_server, client_id=CLIENT_ID, also=PRODUCER_KEYS)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("perf produce", "This tool is used to verify the producer performance.")
    parser.add_argument("--topic", required=True, help="produce messages to this topic")
    parser.add_argument("--num-records", type=int, required=True, metavar="N", help="number of messages to produce")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int, metavar="BYTES", help="random letters of this size")
    payload.add_argument("--payload-file", metavar="FILE", help="a random line of this file for each message")
    payload.add_argument("--payload-monotonic", action="store_true", help="increasing numbers")
    parser.add_argument("--payload-delimiter", default="\\n", metavar="D", help="of --payload-file; default \\n")
    parser.add_argument(
        "--throughput", type=float, required=True, metavar="N", help="at most about N messages a second; -1: no limit"
    )
    parser.add_argument("--producer-props", nargs="+", default=[], metavar="NAME=VALUE", help="such as acks=all")
    parser.add_argument("--producer.config", "--command-config", dest="producer_config", metavar="FILE")
    parser.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT,...", help="instead of bootstrap.servers")
    parser.add_argument("--print-metrics", action="store_true", help="print the producer's counters at the end")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    parser.add_argument("--transactional-id", metavar="ID", default="performance-producer-default-transactional-id")
    parser.add_argument(
        "--transaction-duration-ms",
        type=int,
        default=0,
        metavar="MS",
        help="commit after this time; 0: no transactions",
    )
    return parser


def _payload(options: argparse.Namespace, out: Output) -> Payload:
    if options.record_size is not None:
        return random_payload(options.record_size)
    if options.payload_monotonic:
        return monotonic_payload
    out.note(f"Reading payloads from: {options.payload_file}")
    delimiter = "\n" if options.payload_delimiter == "\\n" else options.payload_delimiter
    payload, count = file_payload(options.payload_file, delimiter)
    out.note(f"Number of messages read: {count}")
    return payload


class _Work:
    """Sends and measures."""

    def __init__(self, options: argparse.Namespace, config: ProducerConfig, payload: Payload, out: Output) -> None:
        self._options = options
        self._out = out
        self._config = config
        self._payload = payload

    async def __call__(self, client: DataClient, interrupts: Interrupts) -> None:
        producer = Producer(client, self._config, PARTITIONERS["murmur2"](random_below))
        try:
            await interrupts.during(producer.start())
            statistics = ProduceStatistics(self._options.num_records, client.clock.time_ms(), self._out.note)
            await interrupts.during(self._send_all(client, producer, statistics))
            figures = statistics.total(client.clock.time_ms())
            metrics = producer.metrics() if self._options.print_metrics else {}
            lines = [figures.line, *(f"producer-metrics:{name} : {value}" for name, value in metrics.items())]
            self._out.document({**figures._asdict(), **({"metrics": metrics} if metrics else {})}, lines)
        finally:
            await producer.close()

    async def _send_all(self, client: DataClient, producer: Producer, statistics: ProduceStatistics) -> None:
        clock, options = client.clock, self._options
        start_ms = clock.time_ms()
        transaction_ms: int | None = None
        for number in range(options.num_records):
            payload = self._payload(number)
            now_ms = clock.time_ms()
            if transaction_ms is None:
                transaction_ms = now_ms
            callback = partial(_acknowledged, statistics, clock, now_ms, len(payload))
            await producer.send(options.topic, InputRecord(None, payload), callback)
            if 0 < options.transaction_duration_ms <= now_ms - transaction_ms:
                await producer.commit()
                transaction_ms = None
            if options.throughput > 0:
                await _throttle(client, (number + 1) * 1000 / options.throughput - (clock.time_ms() - start_ms))
        if options.transaction_duration_ms > 0:
            await producer.commit()
        await producer.flush()


def _acknowledged(
    statistics: ProduceStatistics, clock: Clock, start_ms: int, size: int, batch: Batch, error: Exception | None
) -> None:
    if error is None:
        now_ms = clock.time_ms()
        statistics.record(now_ms - start_ms, size, now_ms)


async def _throttle(client: DataClient, ahead_ms: float) -> None:
    """Wait if the records are ahead of the wanted rate."""
    if ahead_ms >= SHORTEST_PAUSE_MS:
        await client.wait(int(ahead_ms))
