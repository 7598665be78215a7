"""Settings whose values have to fit each other, or a syntax of their own, on both sides of each limit.

Apache Kafka is asked, too, so a case needs no expectation here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

Settings = dict[str, str]

MIB: Final = 1024 * 1024
ASSIGNORS: Final = "org.apache.kafka.coordinator.group.assignor."
TWO_LISTENERS: Final = {
    "listeners": "A://:1,B://:2",
    "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
}
A_BETWEEN_BROKERS: Final = {**TWO_LISTENERS, "inter.broker.listener.name": "A"}

ONE_KEY: Final[dict[str, tuple[str, ...]]] = {
    "controller.quorum.voters": (
        *("1@h:2", "x@h:2", "1@h", "1@h:65535", "1@h:65536", "1@:2", "1@0.0.0.0:2", "1@h:2,1@h:3", "@h:2", "1@a@b:2"),
        *("1@h:2@", "1@A://h:2", "1@[::1]:2", "1@::1:2", "1@[h:2", "99999999999@h:1", "-1@h:2", "+1@h:2", "1@h:x"),
        *("1@h:2, 2@h:3", "1@h:2,", "1@h:-2", "1 @h:2"),
    ),
    "controller.quorum.bootstrap.servers": (
        *("h:2", "0.0.0.0:2", "h:65535", "h:65536", "[::1]:2", "A://h:2", "://h:2", "h:", "h:x", ":2", "h:2,", "h:2,x"),
        *("h:-1", "::1:2"),
    ),
    "early.start.listeners": ("PLAINTEXT", "plaintext", "PLAINTEXT,,", " PLAINTEXT , X", ",", "PLAINTEXT,PLAINTEXT"),
    "max.connections.per.ip.overrides": (
        *("h:1", "h:x", "h:-5", "h:+5", "h: 5", "h:", "h:0", ":5", "h:2147483647", "h:2147483648", "h:1_0", "a/b:1"),
        "h:1,h:2",
    ),
    "group.consumer.assignors": (
        *(f"{ASSIGNORS}UniformAssignor", f"{ASSIGNORS}RangeAssignor", f"{ASSIGNORS}RangeAssignor,"),
        *(f"{ASSIGNORS}RangeAssignor , {ASSIGNORS}UniformAssignor", f"{ASSIGNORS}NoSuchAssignor"),
    ),
    "group.coordinator.rebalance.protocols": (
        *("classic,consumer", "consumer", "classic", "CLASSIC", "classic,share", "classic,unknown", "share"),
    ),
    "listener.security.protocol.map": (*("A:PLAINTEXT,A:SSL", "A:FOO", "A:plaintext", "PLAINTEXT:PLAINTEXT,a:ssl"),),
    "security.providers": ("",),
    "controller.listener.names": ("", "X", "x,y"),
    "node.id": ("-1", "5"),
    "broker.id": ("-1", "-2", "1000", "1001"),
    "log.dirs": (",", " , "),
}
LISTENERS: Final = (
    *("PLAINTEXT://:9092,PLAINTEXT://:9093", "PLAINTEXT://:9092,SSL://:9092", "PLAINTEXT://h:99999999999"),
    *("plaintext://h:1", "FOO://h:1", "PLAINTEXT://", "PLAINTEXT:h:1", "PLAINTEXT://h:1,", "PLAINTEXT://[::1]:1"),
    *("PLAINTEXT://::1:1", "PLAINTEXT://0.0.0.0:1", " PLAINTEXT://h:1 "),
)
OF_A_LISTENER: Final = (
    *(("max.connections", "abc"), ("max.connections", "-1"), ("max.connections", "5"), ("ssl.client.auth", "garbage")),
    *(("unknown.key", "x"), ("principal.builder.class", "no such"), ("plain.connections.max.reauth.ms", "abc")),
    *(("plain.max.connections", "abc"), ("a.b.max.connections", "abc"), ("log.roll.ms", "0"), ("log.roll.ms", "x")),
    *(("num.network.threads", "0"), ("plain.", "x"), ("authorizer.class.name", "x")),
)
SEVERAL: Final[tuple[Settings, ...]] = (
    {"offsets.commit.required.acks": "3", "offsets.topic.replication.factor": "3"},
    {"offsets.commit.required.acks": "4", "offsets.topic.replication.factor": "3"},
    {"offsets.commit.required.acks": "-1", "offsets.topic.replication.factor": "1"},
    {"log.cleaner.dedupe.buffer.size": str(MIB), "log.cleaner.threads": "1"},
    {"log.cleaner.dedupe.buffer.size": str(MIB + 1), "log.cleaner.threads": "1"},
    {"log.cleaner.dedupe.buffer.size": str(2 * MIB + 1), "log.cleaner.threads": "2"},
    {"log.cleaner.dedupe.buffer.size": str(2 * MIB + 2), "log.cleaner.threads": "2"},
    {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "9"},
    {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "10"},
    {"replica.fetch.wait.max.ms": "500", "replica.socket.timeout.ms": "500"},
    {"replica.fetch.wait.max.ms": "501", "replica.socket.timeout.ms": "500"},
    {"replica.fetch.wait.max.ms": "500", "replica.lag.time.max.ms": "500"},
    {"replica.fetch.wait.max.ms": "501", "replica.lag.time.max.ms": "500"},
    {"queued.max.request.bytes": "99", "socket.request.max.bytes": "100"},
    {"queued.max.request.bytes": "100", "socket.request.max.bytes": "100"},
    {"connections.max.idle.ms": "100", "connection.failed.authentication.delay.ms": "100"},
    {"connections.max.idle.ms": "101", "connection.failed.authentication.delay.ms": "100"},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"},
    {"log.roll.ms": "0", "log.roll.hours": "1"},
    {"log.retention.ms": "-1", "log.retention.hours": "0"},
    {"log.retention.ms": "0", "log.retention.hours": "1"},
    {"log.dirs": "", "log.dir": "/x"},
    {"broker.id": "1", "node.id": "2"},
    {"broker.id": "1001", "reserved.broker.max.id": "1001"},
    {"broker.id": "1001", "broker.id.generation.enable": "false"},
    {"inter.broker.protocol.version": "2.8", "offsets.topic.compression.codec": "4"},
    TWO_LISTENERS,
    A_BETWEEN_BROKERS,
    {**TWO_LISTENERS, "inter.broker.listener.name": "a"},
    {**TWO_LISTENERS, "inter.broker.listener.name": "C"},
    *({**A_BETWEEN_BROKERS, "control.plane.listener.name": name} for name in ("B", "b", "a", "C", "")),
    {**A_BETWEEN_BROKERS, "control.plane.listener.name": "B", "advertised.listeners": "A://h:1"},
    {**A_BETWEEN_BROKERS, "security.inter.broker.protocol": "PLAINTEXT"},
    *({**A_BETWEEN_BROKERS, "early.start.listeners": name} for name in ("A", "a")),
    *({**A_BETWEEN_BROKERS, f"listener.name.{name}.max.connections": "x"} for name in ("a", "b")),
    *(
        {**A_BETWEEN_BROKERS, "advertised.listeners": text}
        for text in ("B://h:1", "A://h:1,C://h:1", "A://h:1,B://h:1", "A://0.0.0.0:1")
    ),
)


def related_settings() -> Iterator[Settings]:
    """Every case."""
    for name, texts in ONE_KEY.items():
        yield from ({name: text} for text in texts)
    for name, text in product(("listeners", "advertised.listeners"), LISTENERS):
        yield {name: text}
    for listener, (name, text) in product(("plaintext", "PLAINTEXT", "other"), OF_A_LISTENER):
        yield {f"listener.name.{listener}.{name}": text}
    for kind, limit in product(("consumer", "share"), ("heartbeat.interval.ms", "session.timeout.ms")):
        for low, value, high in ((10, 10, 10), (10, 9, 10), (10, 11, 10), (10, 9, 9), (11, 10, 10), (12, 11, 11)):
            yield {
                f"group.{kind}.min.{limit}": str(low),
                f"group.{kind}.{limit}": str(value),
                f"group.{kind}.max.{limit}": str(high),
            }
    for low, value, high in ((1000, 1000, 30000), (1001, 1000, 30000), (1000, 30001, 30000), (30000, 30000, 30000)):
        yield {
            "group.share.min.record.lock.duration.ms": str(low),
            "group.share.record.lock.duration.ms": str(value),
            "group.share.max.record.lock.duration.ms": str(high),
        }
    yield from SEVERAL
