"""Bytes of records of magic 2, and what is read from them."""

from __future__ import annotations

from hypothesis import strategies as st

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.records.record import Record, append_record
from odradek.protocol.records.record_walks import read_records
from tests.support.wire.record_strategies import T, spaced_records


def encoded(*records: Record, base_offset: int = 0, base_timestamp: int = T) -> bytes:
    """The records as they follow each other in a batch."""
    out = bytearray()
    for record in records:
        append_record(
            out,
            record.offset - base_offset,
            record.timestamp - base_timestamp,
            record.key,
            record.value,
            record.headers,
        )
    return bytes(out)


@st.composite
def damaged_records(draw: st.DrawFn) -> tuple[int, bytes]:
    """How many records there were, and their bytes with one byte changed or with the end cut off."""
    base_offset, records = draw(spaced_records())
    data = bytearray(encoded(*records, base_offset=base_offset, base_timestamp=records[0].timestamp))
    if draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    else:
        del data[draw(st.integers(0, len(data) - 1)) :]
    return len(records), bytes(data)


def read(data: bytes, count: int, *, base_offset: int = 0, base_timestamp: int = T) -> list[Record]:
    return list(read_records(data, count, base_offset, base_timestamp, -1, None))


def raw_record(body: bytes, size: int | None = None) -> bytes:
    """A record of these bytes behind the size of its body, or behind another one."""
    return write_varint(len(body) if size is None else size) + body


ONE = Record(0, T, b"k", b"v")
ONE_BYTES = bytes.fromhex("10000000026b027600")
