"""A member of a consumer group that polls in a thread of its own, and records its assignments and revocations.

`KillableMember` is the same in a process of its own, which can be killed before it leaves the group.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

import confluent_kafka

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.process import ManagedProcess
from tests.support.waiting import eventually

Owned = frozenset[tuple[str, int]]
STABLE_TIMEOUT_S = 20
QUIET_S = 0.2
"""A rebalance that was under way has been told in this time."""


class Owner(Protocol):
    """A member of a group, of any client."""

    @property
    def owned(self) -> Owned:
        """What it has been assigned and not been told to give up."""


class Member:
    """One confluent-kafka consumer; `with Member(...) as member:` leaves the group at the end."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **config: str | int | bool) -> None:
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 100,
                **{key.replace("_", "."): value for key, value in config.items()},
            }
        )
        self.owned: Owned = frozenset()
        self.assignments: list[Owned] = []
        self.revocations: list[Owned] = []
        self.errors: list[confluent_kafka.KafkaError] = []
        self.values: list[bytes] = []
        self._is_static = "group_instance_id" in config
        self._leaving = threading.Event()
        self.consumer.subscribe(list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._thread = threading.Thread(target=self._run, name=f"member of {group}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop polling and close: LeaveGroup, except for a static member."""
        self._leaving.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the consumer does not close"

    def _run(self) -> None:
        while not self._leaving.is_set():
            message = self.consumer.poll(0.02)
            self.owned = frozenset((p.topic, p.partition) for p in self.consumer.assignment())
            if message is None:
                continue
            if message.error():
                self.errors.append(message.error())
            else:
                self.values.append(message.value())
        if not self._is_static:
            self._unsubscribe()
        self.consumer.close()
        self.owned = frozenset()

    def _unsubscribe(self) -> None:
        """Give everything up before the consumer is closed.

        If a rebalance is told to the application when its group has ended, confluent-kafka (2.16) asks librdkafka for
        the protocol of the group, waits for an answer that nobody gives, and holds the interpreter's lock meanwhile.
        A static member would come back with a rebalance.
        """
        self.consumer.unsubscribe()
        quiet_until_s = time.monotonic() + QUIET_S
        while time.monotonic() < quiet_until_s or self.consumer.assignment():
            self.consumer.poll(0.02)

    def _on_assign(self, _: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.assignments.append(frozenset((p.topic, p.partition) for p in partitions))

    def _on_revoke(self, _: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.revocations.append(frozenset((p.topic, p.partition) for p in partitions))


def await_shares(members: Sequence[Owner], partitions: Owned, sizes: Sequence[int]) -> list[Owned]:
    """Wait until the members own all of `partitions`, none twice, in shares of these sizes (in any order)."""

    def settled(shares: list[Owned]) -> bool:
        together = sorted(owned for share in shares for owned in share)
        return together == sorted(partitions) and sorted(map(len, shares)) == sorted(sizes)

    return eventually(lambda: [member.owned for member in members], accept=settled, timeout_s=STABLE_TIMEOUT_S)


def partitions_of(topics: dict[str, int]) -> Owned:
    return frozenset((topic, partition) for topic, count in topics.items() for partition in range(count))


class KillableMember:
    """A member in a process, which can be killed."""

    def __init__(self, directory: Path, bootstrap: str, group: str, topic: str, session_timeout_ms: int) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.support.loads.group_member",
            bootstrap,
            group,
            topic,
            str(session_timeout_ms),
        ]
        self._process = ManagedProcess(command, directory / "member.log", cwd=REPOSITORY)

    def start(self, owning: int) -> None:
        """Start, and wait until it owns that many partitions."""
        self._process.start()
        self._process.wait_for_line(f"^owns {owning}$", STABLE_TIMEOUT_S)

    def kill(self) -> None:
        if self._process.is_running:
            self._process.kill()


def main(bootstrap: str, group: str, topic: str, session_timeout_ms: str) -> None:
    member = Member(bootstrap, group, [topic], session_timeout_ms=int(session_timeout_ms))
    printed = 0
    while True:
        if len(member.owned) != printed:
            printed = len(member.owned)
            print(f"owns {printed}", flush=True)
        member._leaving.wait(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
