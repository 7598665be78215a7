"""Tombstones of a group, and the batches they go in."""

from __future__ import annotations

import logging

import pytest

from odradek.coordinator.group.tombstones import append_tombstones
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import RecordBatch
from tests.support.in_process.coordinator_log import InMemoryCoordinatorLog

KEYS = [b"key %02d" % number for number in range(30)]


@pytest.mark.parametrize(("max_bytes", "count"), [(1_000_000, 1), (300, 4), (10, 30)])
def test_batches_are_no_larger_than_the_log_takes_and_hold_one_at_least(max_bytes: int, count: int) -> None:
    log = InMemoryCoordinatorLog()
    log.max_bytes = max_bytes
    append_tombstones(log, "g", 3, KEYS, 5)
    batches = [batch for batch in log.read_all(3) if isinstance(batch, RecordBatch)]
    assert [(record.key, record.value) for batch in batches for record in batch.records()] == [
        (key, None) for key in KEYS
    ]
    assert len(batches) == count
    assert all(batch.size_in_bytes <= max_bytes for batch in batches) or count == len(KEYS)


def test_what_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = InMemoryCoordinatorLog()
    log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    with caplog.at_level(logging.ERROR):
        append_tombstones(log, "g", 3, KEYS, 5)
    assert "tombstones of group g: NOT_ENOUGH_REPLICAS" in caplog.text
