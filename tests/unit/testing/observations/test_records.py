from __future__ import annotations

import pytest

from odradek.protocol.records.batch import assign_prefix
from odradek.testing.observations.records import AbortedRange, Piece, end_of, records_in, records_of, shown
from tests.support.wire.requests import OLD, batch, message_set


def piece(*batches: tuple[int, bytes], **known: object) -> Piece:
    """Batches at these offsets."""
    data = b""
    for offset, each in batches:
        placed = bytearray(each)
        assign_prefix(placed, offset, 4)
        data += placed
    return Piece(partition=2, data=data, **{"start": 0, **known})  # type: ignore[arg-type]


def transactional(*values: bytes, producer_id: int = 7) -> bytes:
    return batch(*values, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def test_records_below_the_start_are_left_out() -> None:
    found = list(records_in(piece((10, batch(b"a", b"b", b"c")), start=11)))
    assert [(record.partition, record.offset, record.value) for record in found] == [(2, 11, b"b"), (2, 12, b"c")]
    assert {record.leader_epoch for record in found} == {4}


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({}, "committed"),
        ({"aborted": (AbortedRange(7, 9, 12),)}, "aborted"),
        ({"aborted": (AbortedRange(8, 9, 12),)}, "committed"),
        ({"aborted": (AbortedRange(7, 11, 12),)}, "committed"),
        ({"open_from": {7: 10}}, "open"),
        ({"open_from": {7: 11}}, "committed"),
    ],
)
def test_outcomes(known: dict[str, object], outcome: str) -> None:
    (record,) = records_in(piece((10, transactional(b"a")), **known))
    assert record.transaction == outcome
    assert str(record) == f"2@10 null=a {outcome}"


def test_markers_are_no_records_but_have_offsets() -> None:
    marker = batch(b"", producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    found = piece((10, transactional(b"a")), (11, marker))
    assert [record.offset for record in records_in(found)] == [10]
    assert end_of(found) == 12
    assert end_of(piece(start=5)) == 5


def test_old_formats() -> None:
    (old,) = records_of(message_set(0, b"a"), 0)
    assert (old.timestamp_type, old.timestamp, old.producer_id, old.compression) == ("NoTimestampType", -1, -1, "none")
    first, _ = records_of(message_set(1, b"a", b"b", compression_type=1), 0)
    assert (first.timestamp_type, first.timestamp, first.compression) == ("CreateTime", OLD, "gzip")


def test_values_in_messages() -> None:
    assert [shown(None), shown(b"text"), shown(b"\xff"), shown(b"x" * 61)] == [
        "null",
        "text",
        "\\xff",
        f"{'x' * 60}...",
    ]
