"""Producing and consuming 1,000-byte records over TLS, and, for Odradek, how much more that costs than without TLS."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import confluent_kafka

from tests.benchmarks.beside_apache.consume import read_all
from tests.benchmarks.beside_apache.produce import RECORD_BYTES, fill
from tests.benchmarks.contenders import SETTINGS, Contender, Contenders, create_topic, delete_topic
from tests.benchmarks.measure import Table, Usage, usage_of
from tests.support.certificates import PASSWORD, Authority
from tests.support.processes.apache.apache import IN_EARNEST, ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port

PARTITIONS = 6
BATCH_BYTES = 131_072
TOTAL_BYTES = 200_000_000
ROUNDS = 3
"""The first ones warm up, and the last one is shown."""
GIGABYTES = TOTAL_BYTES / 1e9


def run(contenders: Contenders) -> None:
    table = Table(
        f"{RECORD_BYTES:,} B records over TLS, librdkafka, {PARTITIONS} partitions, {TOTAL_BYTES / 1e6:.0f} MB"
    )
    with started(contenders) as (odradek, apache, client):
        results: dict[str, tuple[Usage, float]] = {}
        for _ in range(ROUNDS):
            results = {}
            for name, broker in (("ours", odradek), ("theirs", apache)):
                own = {**client, "bootstrap.servers": f"127.0.0.1:{tls_port(broker)}"}
                create_topic(broker, "tls", PARTITIONS)
                results[f"{name} produce"] = measure(broker, lambda broker=broker, own=own: produce(broker, own))  # type: ignore[misc]
                results[f"{name} consume"] = measure(broker, lambda own=own: consume(own))  # type: ignore[misc]
                plain = {"bootstrap.servers": broker.bootstrap}
                results[f"{name} consume plain"] = measure(broker, lambda plain=plain: consume(plain))  # type: ignore[misc]
                delete_topic(broker, "tls")
        for work in ("produce", "consume", "consume plain"):
            (ours, our_s), (theirs, their_s) = results[f"ours {work}"], results[f"theirs {work}"]
            name = work.replace("plain", "without TLS")
            table.row(name, "CPU s/GB", ours.total_s / GIGABYTES, theirs.total_s / GIGABYTES)
            table.row("  of it user", "s/GB", ours.user_s / GIGABYTES, theirs.user_s / GIGABYTES)
            table.row("  throughput", "MB/s", TOTAL_BYTES / our_s / 1e6, TOTAL_BYTES / their_s / 1e6)


@contextmanager
def started(contenders: Contenders) -> Iterator[tuple[OdradekBroker, ApacheBroker, Mapping[str, str]]]:
    """Both brokers, and the settings of a client."""
    directory, authority = contenders.directory, Authority()
    ca = authority.write_pem(directory / "ca.pem")
    store = authority.issue("broker").write_pkcs12(directory / "broker.p12")
    common = {
        **SETTINGS,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
    }
    ports = [free_port() for _ in range(4)]
    listeners = [f"PLAINTEXT://127.0.0.1:{a},CLIENTS://127.0.0.1:{b}" for a, b in (ports[:2], ports[2:])]
    odradek = OdradekBroker(directory / "odradek-tls", {**common, "listeners": listeners[0]}, ports[0])
    apache = ApacheBroker(
        directory / "apache-tls",
        contenders.zookeeper.new_chroot(),
        {**common, "listeners": listeners[1]},
        IN_EARNEST,
        ports[2],
    )
    TLS_PORTS.update({ports[0]: ports[1], ports[2]: ports[3]})
    try:
        odradek.start()
        apache.start()
        yield odradek, apache, {"security.protocol": "SSL", "ssl.ca.location": str(ca)}
    finally:
        odradek.close()
        apache.close()


TLS_PORTS: dict[int, int] = {}


def tls_port(broker: Contender) -> int:
    return TLS_PORTS[broker.port]


def measure(broker: Contender, work: object) -> tuple[Usage, float]:
    """Processor time of the broker and wall seconds."""
    assert callable(work)
    before, began = usage_of(broker.pid), time.perf_counter()
    work()
    return usage_of(broker.pid) - before, time.perf_counter() - began


def produce(broker: Contender, client: Mapping[str, str]) -> None:
    fill(broker, "tls", PARTITIONS, TOTAL_BYTES, BATCH_BYTES, client)


def consume(client: Mapping[str, str]) -> None:
    consumer = confluent_kafka.Consumer(
        {
            **client,
            "group.id": "unused",
            "enable.auto.commit": False,
            "queued.min.messages": 200_000,
            "check.crcs": False,
        }
    )
    read_all(consumer, "tls", PARTITIONS, TOTAL_BYTES // RECORD_BYTES)
