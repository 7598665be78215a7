"""Fifty members that join, leave, are paused and killed at random, while their coordinator is killed again and again.

In every stable generation each partition has one owner, and in the end every record has been delivered. Once with the
eager protocol and once with the cooperative one; static and dynamic members. The seed is printed; ODRADEK_SOAK_SEED
repeats its choices, ODRADEK_SOAK_EVENTS shortens the run.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import decode_from
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from tests.soak.cluster.group_host import DYNAMIC, REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, Host
from tests.support.admin import Admin
from tests.support.loads.numbered_load import PARTITIONS, Load, read_all
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.soak

EVENTS = int(os.environ.get("ODRADEK_SOAK_EVENTS", "200"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
HOSTS = 10
MEMBERS_OF_A_HOST = 5
LEAST_MEMBERS = 10
STABLE_S = (SESSION_TIMEOUT_MS + REBALANCE_TIMEOUT_MS) / 1000 + 15
DELIVERED_S = 120
GROUP = "many"
STABLE = "Stable"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, {"group.initial.rebalance.delay.ms": "500"})) as process:
        yield process


class Generations:
    """Describes the group all the time: what is stable is checked."""

    def __init__(self, broker: OdradekBroker) -> None:
        self.wrong: list[str] = []
        self.stable: set[frozenset[str]] = set()
        self._broker = broker
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def describe(self) -> tuple[str, dict[str, list[int]]]:
        """The state, and the partitions of each member."""
        with RawClient(self._broker.host, self._broker.port) as client:
            answer = client.call(build(ApiKey.DESCRIBE_GROUPS, groups=[GROUP]), 4)
        (group,) = answer.groups  # type: ignore[attr-defined]
        return group.group_state, {member.member_id: assigned(member.member_assignment) for member in group.members}

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            try:
                state, members = self.describe()
            except (OSError, ConnectionClosedError):
                continue  # the broker is being started again
            if state == STABLE:
                self.stable.add(frozenset(members))
                owners = Counter(partition for owned in members.values() for partition in owned)
                if max(owners.values(), default=1) > 1:
                    self.wrong.append(f"owned twice: {members}")

    def await_stable(self, members: int) -> None:
        """All of them are there, and every partition has an owner."""

        def look() -> object:
            try:
                state, found = self.describe()
            except (OSError, ConnectionClosedError):
                return None
            owned = sorted(partition for partitions in found.values() for partition in partitions)
            return state, len(found), owned

        wanted = (STABLE, members, list(range(PARTITIONS)))
        eventually(look, accept=lambda seen: seen == wanted, timeout_s=STABLE_S)

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(30)


def assigned(data: bytes) -> list[int]:
    if not data:
        return []
    assignment, _ = decode_from(ConsumerProtocolAssignment, memoryview(data)[2:], 0)
    return [number for topic in assignment.assigned_partitions for number in topic.partitions]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_come_and_go(strategy: str, broker: OdradekBroker, tmp_path: Path) -> None:
    print(f"seed {SEED}, {EVENTS} events")
    rng = random.Random(SEED)
    topic = Admin(broker.bootstrap).create_topic("load", PARTITIONS)
    load = Load(broker.bootstrap, topic, idempotent=True, pause_s=0.01)
    number = 0
    hosts: list[Host] = []

    def new_host() -> None:
        nonlocal number
        number += 1
        host = Host(tmp_path, number, broker.bootstrap, GROUP, topic)
        hosts.append(host)
        for index in range(MEMBERS_OF_A_HOST):
            host.join(strategy, f"static-{number}-{index}" if index % 2 else DYNAMIC)

    def kill_host() -> None:
        host = rng.choice(hosts)
        hosts.remove(host)
        host.end()

    def sleep_host() -> None:
        host = rng.choice(hosts)
        host.signal(signal.SIGSTOP)
        try:
            time.sleep(rng.uniform(0, 2 * SESSION_TIMEOUT_MS / 1000))
        finally:
            host.signal(signal.SIGCONT)

    def kill_coordinator() -> None:
        broker.kill()
        broker.start()

    for _ in range(HOSTS):
        new_host()
    generations = Generations(broker)
    try:
        generations.await_stable(HOSTS * MEMBERS_OF_A_HOST)
        for event in range(EVENTS):
            members = sum(host.members for host in hosts)
            if event % 2:
                kill_coordinator()
            elif len(hosts) < HOSTS and rng.random() < 0.5:
                new_host()
            elif members <= LEAST_MEMBERS or rng.random() < 0.3:
                rng.choice(hosts).join(strategy)
            elif rng.random() < 0.4:
                rng.choice([host for host in hosts if host.members > 1]).leave()
            else:
                rng.choice((kill_host, sleep_host) if len(hosts) > 1 else (sleep_host,))()
            time.sleep(rng.uniform(0, 3))
        generations.await_stable(sum(host.members for host in hosts))
        load.finish()
        await_delivered(broker, load, tmp_path)
    finally:
        generations.finish()
        for host in hosts:
            host.end()
    print(f"{load.total} records, {len(generations.stable)} stable generations, {number} processes of members")
    assert generations.wrong == []
    assert load.failed == []


def await_delivered(broker: OdradekBroker, load: Load, directory: Path) -> None:
    written = {
        b"%d:%d" % (partition, number)
        for partition in range(PARTITIONS)
        for number in read_all(broker.bootstrap, load.topic, partition)
    }

    def missing() -> int:
        read = {line for path in directory.glob("*.read") for line in path.read_bytes().splitlines()}
        return len(written - read)

    eventually(missing, accept=lambda count: count == 0, timeout_s=DELIVERED_S)
