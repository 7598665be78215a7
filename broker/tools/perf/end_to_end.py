"""`odradek perf end-to-end`: the time from sending a record until a consumer has it.

Kafka: EndToEndLatency.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.broker.tools.command.output import Output
from odradek.broker.tools.command.running import EXIT_FAILED
from odradek.broker.tools.data.client.properties import CONSUMER_KEYS, PRODUCER_KEYS, Properties, gather
from odradek.broker.tools.data.client.running import run_with_client
from odradek.broker.tools.data.consume_options import fetch_config
from odradek.broker.tools.data.consumer.consumer import Consumer, ConsumerConfig, Subscription
from odradek.broker.tools.data.consumer.offset_choice import END
from odradek.broker.tools.data.produce_options import producer_config
from odradek.broker.tools.data.producer.partitioner import PARTITIONERS, random_below
from odradek.broker.tools.data.producer.producer import Producer
from odradek.broker.tools.data.records.record_reader import InputRecord
from odradek.broker.tools.perf.statistics import percentiles
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.client.interrupts import Interrupts
    from odradek.timer.clock import Clock

USAGE: Final = (
    "USAGE: odradek perf end-to-end broker_list topic num_messages producer_acks message_size_bytes [properties_file] "
    "[--json]"
)
CLIENT_ID: Final = "end-to-end-latency"
POLL_MS: Final = 60_000
REPORTED: Final = 1_000
"""A line is printed for each so many records."""


def main(arguments: Sequence[str]) -> int:
    """Measure. Returns the exit status."""
    out = Output.in_lines(is_json="--json" in arguments)
    arguments = [argument for argument in arguments if argument != "--json"]
    if len(arguments) not in (5, 6) or not (arguments[2].isdecimal() and arguments[4].isdecimal()):
        sys.stderr.write(f"{USAGE}\n")
        return EXIT_FAILED
    servers, topic, count, acks, size = arguments[:5]
    if acks not in ("1", "all"):
        sys.stderr.write("Latency testing requires synchronous acknowledgement. Please use 1 or all\n")
        return EXIT_FAILED

    def make_work() -> tuple[_Work, Mapping[str, str]]:
        settings = gather(arguments[5] if len(arguments) == 6 else None, ())
        if "transactional.id" in settings:
            raise CommandFailed("transactional.id: the records are not sent in transactions.")
        settings |= {"acks": acks, "linger.ms": "0", "fetch.max.wait.ms": "0"}
        return _Work(settings, topic, int(count), int(size), out), settings

    return run_with_client(make_work, servers, client_id=CLIENT_ID, also=(*PRODUCER_KEYS, *CONSUMER_KEYS))


class _Work:
    """Sends a record and waits for it, again and again."""

    def __init__(self, settings: Mapping[str, str], topic: str, count: int, size: int, out: Output) -> None:
        """Raises: CommandFailed."""
        self._out = out
        self._topic = topic
        self._count = count
        self._size = size
        self._producer_config = producer_config(settings)
        self._consumer_config = ConsumerConfig(fetch=fetch_config(Properties(settings), END), start=END)

    async def __call__(self, client: DataClient, interrupts: Interrupts) -> None:
        await client.refresh([self._topic])
        if not client.cluster.partition_count(self._topic):
            await interrupts.during(_create_topic(client, self._topic, self._out))
        producer = Producer(client, self._producer_config, PARTITIONERS["murmur2"](random_below))
        consumer = Consumer(client, self._consumer_config, Subscription(topics=frozenset({self._topic})))
        try:
            await interrupts.during(self._measure(client.clock, producer, consumer))
        finally:
            await producer.close()
            await consumer.close()

    async def _measure(self, clock: Clock, producer: Producer, consumer: Consumer) -> None:
        await producer.start()
        await consumer.start()
        while not consumer.has_positions:
            await consumer.poll(0)
        rng = Random(0)
        latencies: list[float] = []
        for number in range(self._count):
            message = bytes((rng.randrange(65, 91),)) * self._size
            begin_ns = clock.monotonic_ns()
            await producer.send(self._topic, InputRecord(None, message))
            await producer.flush()
            found = await _receive(consumer)
            latency_ms = (clock.monotonic_ns() - begin_ns) / 1_000_000
            if found != [message]:
                raise CommandFailed(f"one record was expected, the one that was sent; received were {len(found)}")
            if number % REPORTED == 0:
                self._out.note(f"{number}\t{latency_ms:.6f}")
            latencies.append(latency_ms)
        average = sum(latencies) / max(1, len(latencies))
        p50, p99, p999 = percentiles([int(found) for found in latencies], 0.5, 0.99, 0.999)
        figures = {
            "records": len(latencies),
            "average_latency_ms": average,
            "p50_latency_ms": p50,
            "p99_latency_ms": p99,
            "p999_latency_ms": p999,
        }
        lines = f"Avg latency: {average:.4f} ms", f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}"
        self._out.document(figures, lines)


async def _receive(consumer: Consumer) -> list[bytes | None]:
    """The values of the next chunk with records."""
    while True:
        chunk = await consumer.poll(POLL_MS)
        if chunk is not None:
            consumer.done(chunk)
            if chunk.records:
                return [found.record.value for found in chunk.records]


async def _create_topic(client: DataClient, topic: str, out: Output) -> None:
    """Create it with one partition and one replica. Raises: CommandFailed."""
    out.note(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=client.config.request_timeout_ms)
    for node in client.cluster.nodes:
        response = await client.ask(node, request, CreateTopicsResponse, purpose="metadata")
        (result,) = response.topics
        if result.error_code != ErrorCode.NOT_CONTROLLER:
            check(result.error_code, result.error_message, f"Creation of topic {topic} failed")
            await client.await_topic(topic, create=False, timeout_ms=client.config.api_timeout_ms)
            return
    raise CommandFailed(f"Creation of topic {topic} failed: no broker is the controller")
