"""Compressed batches from librdkafka: the broker checks them and keeps them as they are; a consumer gets them back."""

from __future__ import annotations

import random
from functools import partial
from typing import Final

from tests.benchmarks.clients import librdkafka
from tests.benchmarks.clients.librdkafka import RECORD_BYTES
from tests.benchmarks.comparison.costs import bulk_figures, cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, delete_topic

PARTITIONS: Final = 6
RECORDS: Final = 100_000
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RANDOM: Final = random.Random(1)
VALUES: Final = tuple(RANDOM.randbytes(RECORD_BYTES // 2) + bytes(RECORD_BYTES // 2) for _ in range(1_000))
"""They become half as large."""


def drive(codec: str, produced_as: str, side: Side) -> Figures:
    """`produced_as`: what the topic wants (`compression.type`)."""
    topic, records = side.new_topic("compressed"), side.amount(RECORDS, at_least=100)
    create_topic(side.broker, topic, PARTITIONS, {"compression.type": produced_as})
    client = {**side.librdkafka, "compression.type": codec, "batch.size": 131_072}
    cost = cost_of(side, partial(librdkafka.produce, client, topic, PARTITIONS, records, values=VALUES))
    read = cost_of(side, partial(librdkafka.consume, side.librdkafka, topic, PARTITIONS, records))
    delete_topic(side.broker, topic)
    size = records * RECORD_BYTES
    names = {"produce": cost, "consume": read}
    return {
        (f"{name}: {figure.strip()}", unit): value
        for name, of in names.items()
        for (figure, unit), value in bulk_figures(of, size).items()
    }


WORKLOADS: Final = (
    *(
        Workload(
            name=f"compression/{codec}",
            description=f"1,000 B records, half of it random, compressed by the client with {codec}; per GB of records",
            setup=ONE_NODE,
            drive=partial(drive, codec, "producer"),
        )
        for codec in CODECS
    ),
    *(
        Workload(
            name=f"compression/anew-{codec}",
            description=f"The same with lz4 into a topic with compression.type={codec}: the broker compresses anew",
            setup=ONE_NODE,
            drive=partial(drive, "lz4", codec),
        )
        for codec in ("gzip", "zstd")
    ),
)
