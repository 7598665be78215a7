"""Hypothesis strategies for records, shared by the tests of batches, legacy messages and conversion."""

from __future__ import annotations

from hypothesis import strategies as st

from odradek.protocol.records.record import Record, SimpleRecord

T = 1_700_000_000_000

payloads = st.none() | st.binary(max_size=200) | st.binary(min_size=1, max_size=3).map(lambda seed: seed * 3000)
timestamps = st.integers(-1, 2**63 - 2) | st.integers(T - 10_000, T + 10_000)
"""The largest distance of two of them is the largest that a batch can have."""
headers = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=70)), max_size=3).map(tuple)
simple_records = st.builds(SimpleRecord, timestamps, payloads, payloads, headers)
headerless_records = st.builds(SimpleRecord, timestamps, payloads, payloads, st.just(()))
base_offsets = st.integers(0, 2**62)


@st.composite
def spaced_records(draw: st.DrawFn, *, with_headers: bool = True) -> tuple[int, list[Record]]:
    """A base offset and records with gaps between their offsets, as compaction leaves them."""
    base_offset = draw(base_offsets)
    offset = base_offset + draw(st.integers(0, 3)) - 1
    records = []
    for simple in draw(st.lists(simple_records if with_headers else headerless_records, min_size=1, max_size=8)):
        offset += draw(st.integers(1, 9000))
        records.append(Record(offset, *simple))
    return base_offset, records
