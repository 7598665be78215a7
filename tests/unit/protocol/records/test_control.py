from __future__ import annotations

import struct

import pytest

from odradek.protocol.records.batch import LegacyBatch, RecordBatch
from odradek.protocol.records.builder import build_batch, build_empty_batch
from odradek.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_control_batch,
    build_end_transaction_batch,
    control_record_type,
)
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import CONTROL_MASK
from odradek.protocol.records.legacy import build_message
from odradek.protocol.records.record import SimpleRecord
from tests.support.wire.record_strategies import T

COMMIT = EndTransactionMarker(type=ControlRecordType.COMMIT, coordinator_epoch=4)


def view(data: bytearray) -> RecordBatch:
    return RecordBatch(memoryview(data))


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_marker_round_trip(kind: ControlRecordType) -> None:
    marker = EndTransactionMarker(type=kind, coordinator_epoch=2**31 - 1)
    batch = view(build_end_transaction_batch(marker, timestamp=T, producer_id=9, producer_epoch=3, base_offset=50))
    assert EndTransactionMarker.from_record(next(batch.records())) == marker
    assert control_record_type(batch) is kind
    assert marker.is_commit == (kind is ControlRecordType.COMMIT)
    assert (batch.is_control, batch.is_transactional, batch.compression_type) == (True, True, 0)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.base_offset) == (9, 3, -1, 50)


def test_marker_needs_a_producer() -> None:
    with pytest.raises(ValueError, match="valid producerId"):
        build_end_transaction_batch(COMMIT, timestamp=T, producer_id=-1, producer_epoch=-1)


def test_only_abort_and_commit_end_a_transaction() -> None:
    with pytest.raises(InvalidRecordError):
        EndTransactionMarker(type=ControlRecordType.LEADER_CHANGE, coordinator_epoch=0)


def test_types_of_later_versions_are_unknown_and_not_errors() -> None:
    for type_id in (7, -2, 32767):
        assert ControlRecordType.parse(struct.pack(">hh", 0, type_id)) is ControlRecordType.UNKNOWN
    assert ControlRecordType.parse(struct.pack(">hhq", 5, 1, 0)) is ControlRecordType.COMMIT
    with pytest.raises(ValueError, match="UNKNOWN"):
        ControlRecordType.UNKNOWN.key()


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", struct.pack(">hh", -1, 0)])
def test_damaged_keys(key: bytes | None) -> None:
    with pytest.raises(InvalidRecordError):
        ControlRecordType.parse(key)


@pytest.mark.parametrize("value", [None, b"", bytes(5), struct.pack(">hi", -1, 0)])
def test_damaged_marker_values(value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError):
        EndTransactionMarker.from_record(SimpleRecord(T, ControlRecordType.COMMIT.key(), value))


def test_later_marker_versions_are_read_as_far_as_known() -> None:
    record = SimpleRecord(T, ControlRecordType.COMMIT.key(), struct.pack(">hiq", 1, 4, 99))
    assert EndTransactionMarker.from_record(record) == COMMIT


def test_batches_without_a_control_type() -> None:
    emptied = build_empty_batch(
        base_offset=0,
        last_offset=0,
        max_timestamp=T,
        attributes=CONTROL_MASK,
        producer_id=1,
        producer_epoch=0,
        base_sequence=-1,
        partition_leader_epoch=0,
    )
    data = build_batch([SimpleRecord(T, ControlRecordType.COMMIT.key(), b"")])
    legacy = LegacyBatch(memoryview(build_message(1, 0, T, b"", b"")))
    for batch in (view(emptied), view(data), legacy):
        assert control_record_type(batch) is None


def test_other_control_batches_hold_no_marker() -> None:
    batch = view(build_control_batch(SimpleRecord(T, ControlRecordType.SNAPSHOT_HEADER.key(), b"")))
    assert control_record_type(batch) is ControlRecordType.SNAPSHOT_HEADER
