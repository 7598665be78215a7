"""1,000-byte records over TLS, and without it on the same brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from tests.benchmarks.clients import librdkafka
from tests.benchmarks.clients.librdkafka import RECORD_BYTES
from tests.benchmarks.comparison.costs import bulk_figures, cost_of
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Setup, Side, Workload
from tests.benchmarks.contenders import Contenders, create_topic, delete_topic
from tests.support.certificates import PASSWORD, Authority
from tests.support.processes.ports import free_port

TOPIC: Final = "tls"
PARTITIONS: Final = 6
RECORDS: Final = 200_000
BATCH_BYTES: Final = 131_072


@contextmanager
def _with_tls(contenders: Contenders, label: str) -> Iterator[Side]:
    """A node with a listener of each kind; `Side.client` are settings for the one with TLS."""
    directory, authority = contenders.new_directory("certificates"), Authority()
    directory.mkdir()
    ca = authority.write_pem(directory / "ca.pem")
    plain, tls = free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},CLIENTS://127.0.0.1:{tls}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(authority.issue("broker").write_pkcs12(directory / "broker.p12")),
        "ssl.keystore.password": PASSWORD,
    }
    broker = contenders.new(label, "tls", settings)
    broker.port = plain
    client = {
        "bootstrap.servers": f"127.0.0.1:{tls}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(ca),
    }
    try:
        broker.start()
        yield Side(label, contenders, [broker], client)
    finally:
        broker.close()


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        if TOPIC not in side.memo:
            create_topic(side.broker, TOPIC, PARTITIONS)
            _produce(side, TOPIC)
            side.memo[TOPIC] = True


def produce(side: Side) -> Figures:
    topic = side.new_topic("produced")
    create_topic(side.broker, topic, PARTITIONS)
    cost = cost_of(side, partial(_produce, side, topic))
    delete_topic(side.broker, topic)
    return bulk_figures(cost, _records(side) * RECORD_BYTES)


def consume(side: Side, *, tls: bool) -> Figures:
    client = side.librdkafka if tls else {"bootstrap.servers": side.bootstrap}
    cost = cost_of(side, partial(librdkafka.consume, client, TOPIC, PARTITIONS, _records(side)))
    return bulk_figures(cost, _records(side) * RECORD_BYTES)


def _produce(side: Side, topic: str) -> None:
    librdkafka.produce({**side.librdkafka, "batch.size": BATCH_BYTES}, topic, PARTITIONS, _records(side))


def _records(side: Side) -> int:
    return side.amount(RECORDS, at_least=PARTITIONS)


ONE_NODE_WITH_TLS: Final = Setup("one node with TLS", _with_tls)

WORKLOADS: Final = (
    Workload(
        name="tls/produce",
        description=f"Produce {RECORD_BYTES:,} B records over TLS by librdkafka, 128 KB batches, 6 partitions",
        setup=ONE_NODE_WITH_TLS,
        drive=produce,
    ),
    Workload(
        name="tls/consume",
        description="Consume them over TLS",
        setup=ONE_NODE_WITH_TLS,
        prepare=prepare,
        drive=partial(consume, tls=True),
    ),
    Workload(
        name="tls/consume-plain",
        description="Consume the same without TLS",
        setup=ONE_NODE_WITH_TLS,
        prepare=prepare,
        drive=partial(consume, tls=False),
    ),
)
