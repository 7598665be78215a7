"""One producer: what a GB costs the broker, by size of records and batches, partitions, acks and client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

from tests.benchmarks.clients import java_tools, librdkafka
from tests.benchmarks.comparison.costs import bulk_figures, cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, delete_topic

RECORDS: Final = {100: 400_000, 1_000: 200_000}
"""In a turn, by the bytes of a record."""
SINGLE_RECORDS: Final = 10_000
"""In a turn, if each batch has one record."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`batch_bytes` 0: each batch has one record. `acks`: as clients write it."""

    record_bytes: int = 1_000
    partitions: int = 6
    batch_bytes: int = 16_384
    acks: str = "all"
    client: str = "librdkafka"

    @property
    def name(self) -> str:
        batches = f"{self.batch_bytes >> 10}KB" if self.batch_bytes else "single"
        return f"produce/{batches}-{self.partitions}p-{self.record_bytes}B-acks-{self.acks}-{self.client}"

    @property
    def description(self) -> str:
        batches = f"batches of {self.batch_bytes >> 10} KB" if self.batch_bytes else "one record in each batch"
        partitions = f"{self.partitions} partition{'s' * (self.partitions > 1)}"
        client = "kafka-producer-perf-test" if self.client == "java" else self.client
        return f"Produce {self.record_bytes:,} B records by {client}, {batches}, {partitions}, acks={self.acks}"


SHAPES: Final = (
    *(Shape(batch_bytes=size, partitions=count) for size in (16_384, 131_072) for count in (1, 6)),
    Shape(partitions=100),
    Shape(batch_bytes=0),
    Shape(record_bytes=100),
    Shape(record_bytes=100, batch_bytes=131_072),
    Shape(acks="0"),
    Shape(acks="1"),
    Shape(client="java"),
    Shape(client="java", batch_bytes=131_072),
)
"""What runs by default."""


def all_shapes() -> Iterator[Shape]:
    """`SHAPES`, and then the rest of the full product."""
    choices = product((1_000, 100), (1, 6, 100), (0, 16_384, 131_072), ("0", "1", "all"), ("librdkafka", "java"))
    # Java's producer puts as many records into a batch as it has: one record in each takes a client that waits.
    shapes = (Shape(*choice) for choice in choices)
    yield from dict.fromkeys((*SHAPES, *(shape for shape in shapes if shape.batch_bytes or shape.client != "java")))


def drive(shape: Shape, side: Side) -> Figures:
    records = side.amount(RECORDS[shape.record_bytes] if shape.batch_bytes else SINGLE_RECORDS, at_least=100)
    topic = side.new_topic("produce")
    create_topic(side.broker, topic, shape.partitions)
    cost = cost_of(side, partial(send, shape, side, topic, records))
    delete_topic(side.broker, topic)
    size = records * shape.record_bytes
    if shape.batch_bytes:
        return bulk_figures(cost, size, None if cost.returned is None else records / cost.returned)
    return {
        ("processor time", "CPU µs/record"): cost.usage.total_s / records * 1e6,
        ("throughput", "records/s"): records / cost.elapsed_s,
    }


def send(shape: Shape, side: Side, topic: str, records: int) -> float | None:
    """Records a second, if the client says how many these were."""
    if shape.client == "java":
        batch = {"batch_size": shape.batch_bytes, "linger_ms": 20}
        return java_tools.produce(side.bootstrap, topic, records, shape.record_bytes, acks=shape.acks, **batch)
    batches = {"batch.size": shape.batch_bytes} if shape.batch_bytes else {"batch.num.messages": 1, "linger.ms": 0}
    client = {**side.librdkafka, "acks": shape.acks, **batches}
    librdkafka.produce(client, topic, shape.partitions, records, values=[bytes(shape.record_bytes)])
    return None


WORKLOADS: Final = tuple(
    Workload(
        name=shape.name,
        description=shape.description,
        setup=ONE_NODE,
        drive=partial(drive, shape),
        main=shape in SHAPES,
    )
    for shape in all_shapes()
)
