from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.comparison.order import out_of_order, rows_out_of_order


def test_what_is_in_order() -> None:
    assert out_of_order([]) == []
    assert out_of_order([3, 5, 9]) == []


def test_a_record_that_was_moved_far_is_one() -> None:
    assert out_of_order([100, *range(100)]) == [0]
    assert out_of_order([*range(1, 101), 0]) == [100]


@given(st.lists(st.integers(0, 9), unique=True, max_size=8))
def test_the_others_are_in_order_and_no_fewer_would_do(offsets: list[int]) -> None:
    removed = out_of_order(offsets)
    assert removed == sorted(set(removed))
    left = [offset for index, offset in enumerate(offsets) if index not in removed]
    assert left == sorted(left)
    longer = combinations(offsets, len(left) + 1)
    assert not any(list(chosen) == sorted(chosen) for chosen in longer)


def test_groups_are_looked_at_one_by_one() -> None:
    rows = [(0, 7, 10, 3), (0, 7, 11, 1), (0, 7, 12, 2), (0, 8, 13, 0), (0, 8, 14, 1), (1, 8, 15, 5), (1, 8, 16, 4)]
    assert list(rows_out_of_order(rows, 2)) == [(0, 7, 10, 3), (1, 8, 15, 5)]
    assert list(rows_out_of_order([], 2)) == []
