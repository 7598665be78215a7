"""Out-of-sync followers get no records while the leader exceeds its quota."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.leader_throttle import LeaderThrottle
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TP, Replicas, offsets_of

THROTTLED = "leader.replication.throttled.replicas"


def leader(path: Path, throttled: str) -> Replicas:
    """Broker 1 is in sync, broker 2 is not; the quota is used up."""
    replicas = Replicas(path, {THROTTLED: throttled})
    replicas.lead(replicas=[0, 1, 2], isr=[0, 1])
    replicas.append(batch(b"a"))
    replicas.leader_bytes_per_second = 100
    throttle(replicas).record(101)
    return replicas


def throttle(replicas: Replicas) -> LeaderThrottle:
    return replicas.manager.reads.throttle


@pytest.mark.parametrize(
    ("throttled", "expected"),
    [("0:0", True), ("*", True), ("0:1", False), ("1:0", False), ("0:2,0:0", True), ("", False)],
)
def test_partitions_that_the_topic_names_on_this_broker(tmp_path: Path, throttled: str, expected: bool) -> None:
    replicas = leader(tmp_path, throttled)
    partition = replicas.manager.partition(TP)
    assert throttle(replicas).covers(partition) is expected
    assert throttle(replicas).holds_back(partition, 2) is expected
    partition.close()
    assert not throttle(replicas).covers(partition)


def test_follower_out_of_sync_gets_no_records_until_the_rate_has_fallen(tmp_path: Path) -> None:
    replicas = leader(tmp_path, "*")
    (answer,) = replicas.fetch(0, replica_id=2)
    assert (answer.error, answer.size_in_bytes, answer.high_watermark) == (0, 0, 0)
    assert offsets_of(replicas.fetch(0, replica_id=1)[0]) == [0], "in sync"
    assert offsets_of(replicas.fetch(0, replica_id=-2, leader_only=False)[0]) == [], "a reader of committed records"
    replicas.advance(1_010)
    assert offsets_of(replicas.fetch(0, replica_id=2)[0]) == [0]


def test_the_fetch_of_a_throttled_follower_is_recorded(tmp_path: Path) -> None:
    replicas = leader(tmp_path, "*")
    replicas.fetch(1, replica_id=2)
    assert replicas.manager.partition(TP).in_sync.replicas[2].end_offset == 1


def test_waiting_fetch_of_a_throttled_follower_is_not_woken_by_records(tmp_path: Path) -> None:
    replicas = leader(tmp_path, "*")
    held_back = replicas.fetch(0, replica_id=2, max_wait_ms=500)
    in_sync = replicas.fetch(1, replica_id=1, max_wait_ms=500)
    replicas.append(batch(b"b"))
    assert (len(held_back), len(in_sync)) == (0, 1)
    replicas.advance(501)
    assert [answer.size_in_bytes for answer in held_back] == [0]


def test_without_a_bound_no_follower_is_held_back(tmp_path: Path) -> None:
    replicas = leader(tmp_path, "*")
    replicas.leader_bytes_per_second = 2**63 - 1
    throttle(replicas).record(1 << 40)
    assert offsets_of(replicas.fetch(0, replica_id=2)[0]) == [0]
