"""Offset lookups in a partition: the offsets that a client may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.offset_lookups import fetch_offset_for_timestamp, legacy_offsets_before
from odradek.broker.partition.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log import offset_lookup
from odradek.storage.log.offset_lookup import LongLookupError, OpenedBatch
from odradek.storage.offsets import TimestampAndOffset
from tests.support.disks.logs import NOW, batch
from tests.support.in_process.replication.replicas import TP, Replicas

LATEST, EARLIEST, MAX, FAR_FUTURE = -1, -2, -3, 2**60
UNCOMMITTED, COMMITTED = 0, 1


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [(UNCOMMITTED, 1), (COMMITTED, 1), (None, 3)],
    ids=["uncommitted", "committed", "replica"],
)
def test_latest_offset_depends_on_the_isolation(replicas: Replicas, isolation: int | None, expected: int) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b", b"c"))
    replicas.fetch(1, replica_id=1)
    found = fetch_offset_for_timestamp(replicas.manager.partition(TP), LATEST, isolation, -1, leader_only=True)
    assert found is not None
    assert found.offset == expected


def test_consumer_sees_no_segment_beyond_the_high_watermark_in_version_0(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b", b"c"))
    replicas.fetch(1, replica_id=1)
    partition = replicas.manager.partition(TP)
    assert legacy_offsets_before(partition, LATEST, 10, 0, is_consumer=True, leader_only=True) == [1, 0]
    assert legacy_offsets_before(partition, LATEST, 10, 0, is_consumer=False, leader_only=True) == [3, 0]
    assert legacy_offsets_before(partition, EARLIEST, 10, 0, is_consumer=True, leader_only=True) == [0]


def new_leader(replicas: Replicas) -> Partition:
    """It has three records of an earlier leader; one is below the high watermark."""
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b", b"c"))
    replicas.fetch(1, replica_id=1)
    replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1])
    return replicas.manager.partition(TP)


@pytest.mark.parametrize("timestamp", [LATEST, MAX, FAR_FUTURE])
@pytest.mark.parametrize("isolation", [UNCOMMITTED, COMMITTED])
def test_new_leader_refuses_the_latest_offset_to_clients_at_first(
    replicas: Replicas, timestamp: int, isolation: int
) -> None:
    partition = new_leader(replicas)

    def ask() -> TimestampAndOffset | None:
        return fetch_offset_for_timestamp(partition, timestamp, isolation, 1, leader_only=True)

    with pytest.raises(KafkaError) as refused:
        ask()
    assert refused.value.code == ErrorCode.OFFSET_NOT_AVAILABLE
    replicas.fetch(3, replica_id=1)
    found = ask()
    expected = {LATEST: 3, MAX: 2, FAR_FUTURE: None}[timestamp]
    assert (None if found is None else found.offset) == expected


def test_new_leader_returns_the_earliest_offset_and_those_of_replicas(replicas: Replicas) -> None:
    partition = new_leader(replicas)
    for timestamp, isolation, expected in ((EARLIEST, UNCOMMITTED, 0), (LATEST, None, 3), (0, UNCOMMITTED, 0)):
        found = fetch_offset_for_timestamp(partition, timestamp, isolation, -1, leader_only=True)
        assert found is not None
        assert found.offset == expected


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)])
@pytest.mark.parametrize("leads", [True, False])
def test_another_leader_epoch_is_refused(replicas: Replicas, epoch: int, error: ErrorCode, leads: bool) -> None:
    (replicas.lead if leads else replicas.follow)(epoch=1)
    with pytest.raises(KafkaError) as refused:
        fetch_offset_for_timestamp(replicas.manager.partition(TP), LATEST, UNCOMMITTED, epoch, leader_only=leads)
    assert refused.value.code == error


def test_a_lookup_begins_again_when_the_leader_epoch_has_changed(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_lookup, "OPENED_RECORDS_MAX", 0)
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b", b"c"))
    partition = replicas.manager.partition(TP)
    with pytest.raises(LongLookupError) as first:
        fetch_offset_for_timestamp(partition, NOW, None, -1, leader_only=True)
    step = first.value.next_step(OpenedBatch(TimestampAndOffset(NOW, 0, 0)))
    found = fetch_offset_for_timestamp(partition, NOW, None, -1, leader_only=True, step=step)
    assert found == (NOW, 0, 0)
    replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1])
    with pytest.raises(LongLookupError) as again:
        fetch_offset_for_timestamp(partition, NOW, None, -1, leader_only=True, step=step)
    assert (again.value.opening, again.value.leader_epoch) == (first.value.opening, 1)
