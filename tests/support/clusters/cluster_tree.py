"""Reads and changes the nodes of a cluster's ZooKeeper, through a kazoo client of the test.

`expire` ends a broker's session. ZooKeeper derives the password of a session from its id, so the client can take the
session over with the id alone, and close it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

CONNECT_TIMEOUT_S = 20
TAKEOVERS_MAX = 10
PASSWORD_SECRET = 0xB3415C00  # ZooKeeperServer.superSecret
PASSWORD_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition as the controller wrote it; `replicas` in the order of preference."""

    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int

    @property
    def is_complete(self) -> bool:
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


class ClusterTree:
    """The znodes of one cluster, also when ZooKeeper has just been away. `connect` is `host:port/chroot`."""

    def __init__(self, connect: str) -> None:
        self._connect = connect
        self.client = KazooClient(hosts=connect, timeout=CONNECT_TIMEOUT_S)
        self.client.start(CONNECT_TIMEOUT_S)

    def close(self) -> None:
        self.client.stop()
        self.client.close()

    def get(self, path: str) -> Any:
        """A node's JSON, or None if there is no such node."""
        try:
            data, _ = self.client.retry(self.client.get, path)
        except NoNodeError:
            return None
        return json.loads(data)

    def children(self, path: str) -> list[str]:
        try:
            return sorted(self.client.retry(self.client.get_children, path))
        except NoNodeError:
            return []

    def controller(self) -> int | None:
        node = self.get("/controller")
        return None if node is None else int(node["brokerid"])

    def delete_controller(self) -> None:
        """Delete the node of the controller: all live brokers try to become the next one."""
        try:
            self.client.delete("/controller")
        except NoNodeError:
            return

    def broker_ids(self) -> set[int]:
        return set(map(int, self.children("/brokers/ids")))

    def broker_epoch(self, broker_id: int) -> int | None:
        """The transaction that registered the broker."""
        stat = self.client.exists(f"/brokers/ids/{broker_id}")
        return None if stat is None else int(stat.czxid)

    def topics(self) -> set[str]:
        return set(self.children("/brokers/topics"))

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """The partitions of a topic that have a leader, or had one."""
        node = self.get(f"/brokers/topics/{topic}") or {"partitions": {}}
        replicas = {int(partition): tuple(ids) for partition, ids in node["partitions"].items()}
        return {
            partition: PartitionState(
                replicas=replicas[partition],
                leader=state["leader"],
                isr=tuple(state["isr"]),
                leader_epoch=state["leader_epoch"],
                controller_epoch=state["controller_epoch"],
            )
            for partition, state in self.client.retry(self._states, topic, list(replicas)).items()
        }

    def _states(self, topic: str, partitions: Sequence[int]) -> dict[int, Any]:
        """The JSON of those partitions that have a state; all are asked for before the first answer is waited for."""
        asked = [self.client.get_async(f"/brokers/topics/{topic}/partitions/{each}/state") for each in partitions]
        found = {}
        for partition, answer in zip(partitions, asked, strict=True):
            try:
                found[partition] = json.loads(answer.get()[0])
            except NoNodeError:
                continue
        return found

    def partition(self, topic: str, partition: int = 0) -> PartitionState:
        return self.partitions(topic)[partition]

    def is_complete(self, topic: str) -> bool:
        """Whether each partition has a leader, every replica in its ISR, and nothing is being reassigned."""
        node = self.get(f"/brokers/topics/{topic}")
        if node is None or node["adding_replicas"] or node["removing_replicas"]:
            return False
        states = self.partitions(topic)
        return len(states) == len(node["partitions"]) and all(state.is_complete for state in states.values())

    def expire(self, broker_id: int) -> None:
        """End the session in which the broker is registered, at once.

        The broker connects again as soon as its session is taken over, and may get it back before it is closed.
        """
        stat = self.client.exists(f"/brokers/ids/{broker_id}")
        assert stat is not None, f"broker {broker_id} is not registered"
        session = (stat.ephemeralOwner, password_of(stat.ephemeralOwner))
        for _ in range(TAKEOVERS_MAX):
            thief = KazooClient(hosts=self._connect.partition("/")[0], client_id=session, timeout=CONNECT_TIMEOUT_S)
            thief.start(CONNECT_TIMEOUT_S)
            thief.stop()
            thief.close()
            if self.broker_epoch(broker_id) != stat.czxid:
                return
        raise AssertionError(f"broker {broker_id} has got its session back {TAKEOVERS_MAX} times")


def password_of(session_id: int) -> bytes:
    """As ZooKeeperServer.generatePasswd makes it: the first bytes of Java's generator, seeded with the id."""
    words = java_ints(session_id ^ PASSWORD_SECRET)
    return b"".join(struct.pack("<i", next(words)) for _ in range(PASSWORD_BYTES // 4))


def java_ints(seed: int) -> Iterator[int]:
    """`java.util.Random.nextInt`."""
    state = (seed ^ 0x5DEECE66D) & (2**48 - 1)
    while True:
        state = (state * 0x5DEECE66D + 0xB) & (2**48 - 1)
        word = state >> 16
        yield word - 2**32 if word >= 2**31 else word
