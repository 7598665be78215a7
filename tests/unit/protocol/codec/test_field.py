from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.codec.field import FRESH, INT32, Field, Kind, VersionRange
from odradek.protocol.messages.fetch import FetchRequest, PartitionData


@pytest.mark.parametrize(
    ("text", "first", "last", "printed"),
    [("3", 3, 3, "3"), ("0-12", 0, 12, "0-12"), ("5+", 5, 32767, "5+"), ("none", 0, -1, "none"), ("4-4", 4, 4, "4")],
)
def test_version_ranges_are_read_and_printed(text: str, first: int, last: int, printed: str) -> None:
    versions = VersionRange.parse(text)
    assert versions == (first, last)
    assert str(versions) == printed


@given(st.integers(0, 30), st.integers(0, 30), st.integers(-1, 40))
def test_a_range_covers_its_ends_and_what_is_between(first: int, last: int, version: int) -> None:
    assert VersionRange(first, last).covers(version) == (version in range(first, last + 1))


def test_fields_know_their_wire_type() -> None:
    types = {field.name: field.wire_type for field in (*FetchRequest.FIELDS, *PartitionData.FIELDS)}
    assert types["topics"] == "[]FetchTopic"
    assert types["replica_state"] == "ReplicaState"
    assert types["records"] == "records"
    assert types["cluster_id"] == "string"
    assert Field(Kind.ARRAY, "0+", FRESH, element=INT32).wire_type == "[]int32"


def test_repr_of_a_field_is_its_declaration() -> None:
    assert repr(FetchRequest.FIELDS[1]) == "<replica_id: int32 0-14>"
    assert repr(FRESH) == "..."
