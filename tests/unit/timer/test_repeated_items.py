from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.timer.repeated_items import FEW, ITEMS_A_STEP, each_once, repeated
from odradek.timer.sliced_work import run_through


@given(st.lists(st.integers(0, 30)))
def test_it_finds_what_a_count_finds(items: list[int]) -> None:
    assert run_through(repeated(items)) == {item for item, count in Counter(items).items() if count > 1}


def test_items_with_the_same_hash_are_told_apart() -> None:
    items = [number << 61 for number in range(5)]
    assert run_through(repeated(items)) == set()
    assert run_through(repeated([*items, items[3]])) == {items[3]}


def test_of_many_none_is_repeated() -> None:
    assert run_through(repeated([f"{number:x}" for number in range(5000)])) == set()


def test_it_pauses() -> None:
    assert sum(1 for _ in repeated(range(10 * ITEMS_A_STEP))) >= 10


def test_each_once_needs_no_copy_of_many() -> None:
    items = [f"{number:x}" for number in range(FEW + 1)]
    assert run_through(each_once(items)) is items
    assert list(run_through(each_once([*items, "0"]))) == items
    assert list(run_through(each_once(["b", "a", "b"]))) == ["b", "a"]


@pytest.mark.parametrize("distance", [1, 3, 1 << 8, 1 << 15])
def test_numbers_with_equal_distances_need_no_set_of_all(distance: int) -> None:
    items = range(0, 50_000 * distance, distance)
    tracemalloc.start()
    try:
        assert run_through(repeated(items)) == set()
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()
