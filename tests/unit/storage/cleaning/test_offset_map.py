"""The map from keys to offsets: compared with a dict, and at its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.record_walks import KeyedSpan
from odradek.storage.cleaning.offset_map import NO_KEY, NO_OFFSET, OffsetMap
from odradek.storage.config.cleaner_config import BYTES_PER_ENTRY


def spans(*keys: bytes | None, start: int = 0) -> list[KeyedSpan]:
    return [(start + index, 0, key, True, 0, 0) for index, key in enumerate(keys)]


def map_of(slots: int, load_factor: float = 0.9) -> OffsetMap:
    return OffsetMap(BYTES_PER_ENTRY * slots, load_factor)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=2)), max_size=100))
def test_map_answers_like_a_dict(keys: list[bytes | None]) -> None:
    offset_map = map_of(101, 1.0)
    assert offset_map.put_keys(spans(*keys), 5, 5)
    expected = {key: offset for offset, key in enumerate(keys, 5) if key is not None}
    asked = [*keys, b"absent"]
    assert offset_map.get_all(asked) == [NO_KEY if key is None else expected.get(key, NO_OFFSET) for key in asked]
    assert offset_map.size == len(expected)
    assert offset_map.latest_offset == max(expected.values(), default=NO_OFFSET)


def test_all_slots_of_a_full_map_are_found() -> None:
    keys = [b"%d" % index for index in range(1000)]
    offset_map = map_of(1000, 1.0)
    assert offset_map.put_keys(spans(*keys), 0, 0)
    assert offset_map.get_all(keys) == list(range(1000))
    assert offset_map.utilization == 1.0


def test_map_is_full_at_its_load_factor_also_for_a_key_it_has() -> None:
    offset_map = map_of(10)
    keys = [b"%d" % index for index in range(9)]
    assert offset_map.put_keys(spans(*keys), 0, 0)
    assert not offset_map.put_keys(spans(b"0", start=9), 0, 0)
    assert offset_map.size == offset_map.max_entries == 9
    assert offset_map.latest_offset == 8
    assert offset_map.get_all([b"0"]) == [0]


def test_a_record_without_a_key_passes_a_full_map() -> None:
    offset_map = map_of(2, 1.0)
    assert offset_map.put_keys(spans(b"a", b"b", None), 0, 0)


def test_records_before_the_start_are_passed_over() -> None:
    offset_map = map_of(10)
    assert offset_map.put_keys(spans(b"a", b"b", b"a"), 10, 11)
    assert offset_map.get_all([b"a", b"b"]) == [12, 11]
    assert offset_map.put_keys(spans(b"c"), 0, 11)
    assert offset_map.get_all([b"c"]) == [NO_OFFSET]
    assert offset_map.latest_offset == 12


def test_a_map_without_room_for_two_is_refused() -> None:
    assert map_of(2).max_entries == 1
    with pytest.raises(ValueError, match="too small"):
        map_of(1)
    with pytest.raises(ValueError, match="too small"):
        map_of(2, 0.5)


def test_memory_is_what_was_allowed_but_for_the_way_to_a_prime() -> None:
    offset_map = OffsetMap(24_000_000, 0.9)
    assert offset_map.slots == 1_000_000
    assert 24 * 1_000_000 < len(offset_map._digests) + offset_map._next_offsets.nbytes < 24 * 1_000_200


@pytest.mark.parametrize("load_factor", [float("nan"), 0.0, -1.0, float("-inf")])
def test_a_map_of_no_entries_is_refused(load_factor: float) -> None:
    with pytest.raises(ValueError, match="too small"):
        map_of(10, load_factor)


@pytest.mark.parametrize("load_factor", [1.0, 2.0, float("inf")])
def test_a_map_is_full_when_all_its_slots_are_taken(load_factor: float) -> None:
    assert map_of(10, load_factor).max_entries == 10
