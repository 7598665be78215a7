"""Offsets that are looked up in a partition: what the asker may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.offset_lookups import fetch_offset_for_timestamp, legacy_offsets_before
from tests.support.logs import batch
from tests.support.replicas import TP, Replicas

LATEST, EARLIEST = -1, -2
UNCOMMITTED, COMMITTED = 0, 1


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [(UNCOMMITTED, 1), (COMMITTED, 1), (None, 3)],
    ids=["uncommitted", "committed", "replica"],
)
def test_latest_offset_depends_on_who_asks(replicas: Replicas, isolation: int | None, expected: int) -> None:
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
