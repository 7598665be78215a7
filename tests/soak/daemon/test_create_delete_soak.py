"""Topics, groups and connections that come and go by the thousand leave behind no memory, descriptors, timers, tasks.

The first part of a run warms up (caches, the codecs of the versions used); the growth after it is compared.
ODRADEK_SOAK_TOPICS, _GROUPS and _CONNECTIONS shorten the run. ODRADEK_SOAK_MINUTES, 60 by default, is how long all of
them come and go together, with quotas that are set and removed, scrapes of the metrics, and commands.
"""

from __future__ import annotations

import os
import random
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import ApiKey
from tests.soak.daemon.inspected_daemon import InspectedBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.soak

TOPICS = int(os.environ.get("ODRADEK_SOAK_TOPICS", "10000"))
CONNECTIONS = int(os.environ.get("ODRADEK_SOAK_CONNECTIONS", "100000"))
GROUPS = int(os.environ.get("ODRADEK_SOAK_GROUPS", "1000"))
MINUTES = float(os.environ.get("ODRADEK_SOAK_MINUTES", "60"))
TOPICS_AT_A_TIME = 25
GROUPS_AT_A_TIME = 10
PARTITIONS = 3
CONNECTIONS_AT_A_TIME = 100
WARM_UP_SHARE = 0.3
BYTES_PER_TOPIC = 3_000
BYTES_PER_GROUP = 3_000
BYTES_PER_CONNECTION = 150
NOISE_BYTES = 8_000_000
"""What the allocator and the page tables move in either direction, however short the run."""

BYTES_PER_ROUND = 100_000
CLIENTS = 10
"""Names of clients with quotas. What a broker keeps of a client is forgotten after an hour, as in Apache Kafka."""

COMMANDS = (
    ("topics", "--list"),
    ("groups", "--list"),
    ("configs", "--describe", "--entity-type", "brokers", "--entity-name", "0"),
    ("log-dirs", "--describe"),
)
METRICS_LISTENING = re.compile(r"metrics.*http://([\d.]+:\d+)", re.IGNORECASE)

SETTLE_TIMEOUT_S = 40
API_VERSIONS_FRAME = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InspectedBroker]:
    settings = {
        "log.segment.delete.delay.ms": "200",
        "log.initial.task.delay.ms": "200",
        "max.incremental.fetch.session.cache.slots": "4",  # sessions outlive their connections, as in Kafka
        "odradek.metrics.listener": "127.0.0.1:0",
    }
    process = InspectedBroker(tmp_path, settings)
    process.start()
    yield process
    process.close()


def test_topics_leave_nothing_behind(broker: InspectedBroker) -> None:
    run_and_compare(broker, TOPICS, TOPICS_AT_A_TIME, BYTES_PER_TOPIC, lambda names: topics_come_and_go(broker, names))
    assert list(broker.log_dir.glob("*-delete")) == []
    assert list(broker.log_dir.glob("topic-*")) == []
    broker.stop_cleanly()


def test_groups_leave_nothing_behind(broker: InspectedBroker) -> None:
    run_and_compare(
        broker, GROUPS, GROUPS_AT_A_TIME, BYTES_PER_GROUP, lambda numbers: groups_come_and_go(broker, numbers)
    )
    with RawClient(broker.host, broker.port) as client:
        assert client.call(build(ApiKey.LIST_GROUPS), 2).groups == []  # type: ignore[attr-defined]
    broker.stop_cleanly()


def test_connections_leave_nothing_behind(broker: InspectedBroker) -> None:
    rng = random.Random(7)
    run_and_compare(
        broker,
        CONNECTIONS,
        CONNECTIONS_AT_A_TIME,
        BYTES_PER_CONNECTION,
        lambda numbers: connections_come_and_go(broker, len(numbers), rng),
    )
    broker.stop_cleanly()


def test_everything_together_for_an_hour(broker: InspectedBroker) -> None:
    rng = random.Random(7)
    numbers = 0

    def rounds(seconds: float) -> int:
        nonlocal numbers
        first, until = numbers, time.monotonic() + seconds
        while time.monotonic() < until:
            everything_comes_and_goes(broker, numbers, rng)
            numbers += 1
        return numbers - first

    rounds(60 * MINUTES * WARM_UP_SHARE)
    before, resident = settled(broker, None), resident_bytes(broker)
    done = rounds(60 * MINUTES * (1 - WARM_UP_SHARE))
    after, grown = settled(broker, before), resident_bytes(broker) - resident
    print(f"{grown / done:.0f} bytes for each of {done} rounds; before {before}; after {after}")
    assert growth(before, after) == {}
    assert grown < NOISE_BYTES + BYTES_PER_ROUND * done
    broker.stop_cleanly()


def everything_comes_and_goes(broker: InspectedBroker, number: int, rng: random.Random) -> None:
    topics_come_and_go(broker, range(5 * number, 5 * number + 5))
    groups_come_and_go(broker, range(2 * number, 2 * number + 2))
    connections_come_and_go(broker, 20, rng)
    quota_comes_and_goes(broker, f"client-{number % CLIENTS}")
    scraped = urllib.request.urlopen(f"http://{metrics_address(broker)}/metrics", timeout=15).read()
    assert b"kafka_server_brokertopicmetrics" in scraped
    if number % 10 == 0:
        command = COMMANDS[number // 10 % len(COMMANDS)]
        subprocess.run(
            [sys.executable, "-m", "odradek", command[0], "--bootstrap-server", broker.bootstrap, *command[1:]],
            check=True,
            capture_output=True,
            timeout=60,
        )


def quota_comes_and_goes(broker: InspectedBroker, client_id: str) -> None:
    """A client writes under a quota that is set before and removed after it."""
    with RawClient(broker.host, broker.port, client_id=client_id) as client:
        for value, remove in ((1e9, False), (0.0, True)):
            entity = [{"entity_type": "client-id", "entity_name": client_id}]
            entry = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": value, "remove": remove}]}
            altered = client.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry], validate_only=False), 0)
            assert {found.error_code for found in altered.entries} == {0}  # type: ignore[attr-defined]
            metadata = build(ApiKey.METADATA, topics=[])
            client.call(metadata, 9)


def metrics_address(broker: InspectedBroker) -> str:
    """`host:port`, from the broker's log."""
    found = METRICS_LISTENING.search(broker.log_text())
    assert found is not None, "the broker names no address of its metrics"
    return found[1]


def run_and_compare(
    broker: InspectedBroker, total: int, at_a_time: int, bytes_each: int, work: Callable[[range], None]
) -> None:
    """Do `work` on `total` numbers, some at a time, and hold what is there afterwards against what the warm-up left."""
    rounds = [range(first, min(first + at_a_time, total)) for first in range(0, total, at_a_time)]
    warm_up = max(2, int(len(rounds) * WARM_UP_SHARE))
    for numbers in rounds[:warm_up]:
        work(numbers)
    before, resident = settled(broker, None), resident_bytes(broker)
    for numbers in rounds[warm_up:]:
        work(numbers)
    after, grown = settled(broker, before), resident_bytes(broker) - resident
    done = sum(map(len, rounds[warm_up:]))
    print(f"{grown / done:.0f} bytes for each of {done}; before {before}; after {after}")
    assert growth(before, after) == {}
    assert grown < NOISE_BYTES + bytes_each * done


def settled(broker: InspectedBroker, before: dict[str, int] | None) -> dict[str, int]:
    """The counts when they have come to rest: delayed deletes done, closed connections noticed."""
    last: list[dict[str, int]] = []

    def look() -> bool:
        last.append(broker.inside())
        if before is not None:
            return not growth(before, last[-1])
        return len(last) > 10 and growth(last[-5], last[-1]) == growth(last[-1], last[-5]) == {}

    try:
        eventually(look, timeout_s=SETTLE_TIMEOUT_S)
    except AssertionError:
        assert before is not None, f"never at rest: {last[-5:]}"
    return last[-1]


def growth(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int, int]]:
    """What there is more of. `objects` is left out: it counts what caches of the interpreter hold."""
    return {
        name: (before.get(name, 0), count)
        for name, count in after.items()
        if count > before.get(name, 0) + tolerance(name) and name != "objects"
    }


def tolerance(name: str) -> int:
    """Types of which a few are alive at any moment: requests under way, periodic tasks being rearmed."""
    return 10 if name.startswith("type ") else 1


def resident_bytes(broker: InspectedBroker) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


def topics_come_and_go(broker: InspectedBroker, numbers: range) -> None:
    """Create topics, write to each partition, read it back in a session, let a fetch wait, delete them."""
    names = [f"topic-{number}" for number in numbers]
    with RawClient(broker.host, broker.port) as client, RawClient(broker.host, broker.port) as waiting:
        new = [{"name": name, "num_partitions": PARTITIONS, "replication_factor": 1} for name in names]
        created = client.call(build(ApiKey.CREATE_TOPICS, topics=new, timeout_ms=30_000), 5)
        assert {topic.error_code for topic in created.topics} == {0}  # type: ignore[attr-defined]
        written = [{"index": index, "records": batch(b"value")} for index in range(PARTITIONS)]
        data = [{"name": name, "partition_data": written} for name in names]
        produced = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=data), 8)
        codes = {part.error_code for topic in produced.responses for part in topic.partition_responses}  # type: ignore[attr-defined]
        assert codes == {0}
        fetched = client.call(fetch(names, offset=0, max_wait_ms=100), 11)
        assert len(fetched.responses) == len(names)  # type: ignore[attr-defined]
        waiting.send(fetch(names, offset=1, max_wait_ms=60_000), 11)
        deleted = client.call(build(ApiKey.DELETE_TOPICS, topic_names=names, timeout_ms=30_000), 5)
        assert {topic.error_code for topic in deleted.responses} == {0}  # type: ignore[attr-defined]


def fetch(names: list[str], *, offset: int, max_wait_ms: int) -> object:
    partitions = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": 65_536} for index in range(PARTITIONS)
    ]
    topics = [{"topic": name, "partitions": partitions} for name in names]
    return build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 24,
        session_epoch=0,
        topics=topics,
    )


def groups_come_and_go(broker: InspectedBroker, numbers: range) -> None:
    """Groups of one member: join, sync, commit, leave, delete."""
    names = [f"group-{number}" for number in numbers]
    with RawClient(broker.host, broker.port) as client:
        for name in names:
            finding = build(ApiKey.FIND_COORDINATOR, key=name)
            eventually(lambda finding=finding: client.call(finding, 0), accept=lambda a: a.error_code == 0)  # type: ignore[misc]
            joining = build(
                ApiKey.JOIN_GROUP,
                group_id=name,
                session_timeout_ms=6_000,
                rebalance_timeout_ms=6_000,
                member_id="",
                protocol_type="consumer",
                protocols=[{"name": "range", "metadata": b""}],
            )
            joined = eventually(lambda joining=joining: client.call(joining, 2), accept=lambda a: a.error_code == 0)  # type: ignore[misc]
            member = {"group_id": name, "member_id": joined.member_id}
            generation = {**member, "generation_id": joined.generation_id}
            assigned = [{"member_id": joined.member_id, "assignment": b"all"}]
            requests = (
                (build(ApiKey.SYNC_GROUP, **generation, assignments=assigned), 1),
                (build(ApiKey.HEARTBEAT, **generation), 1),
                (build(ApiKey.LEAVE_GROUP, **member), 1),
            )
            for request, version in requests:
                assert client.call(request, version).error_code == 0, request  # type: ignore[attr-defined]
        deleted = client.call(build(ApiKey.DELETE_GROUPS, groups_names=names), 1)
        assert {result.error_code for result in deleted.results} == {0}  # type: ignore[attr-defined]


def connections_come_and_go(broker: InspectedBroker, count: int, rng: random.Random) -> None:
    """Open connections together; close them in every stage of a request, politely or with a reset."""
    clients = [socket.create_connection((broker.host, broker.port), timeout=15) for _ in range(count)]
    asking = []
    for client in clients:
        match rng.randrange(4):
            case 0:
                pass
            case 1:
                client.sendall(API_VERSIONS_FRAME[: rng.randrange(1, len(API_VERSIONS_FRAME))])
            case 2:
                client.sendall(API_VERSIONS_FRAME * rng.randrange(1, 20))
            case _:
                client.sendall(API_VERSIONS_FRAME)
                asking.append(client)
    for client in asking:
        assert client.recv(4, socket.MSG_WAITALL)
    for client in clients:
        if rng.random() < 0.3:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
