"""Which records of a sequence are out of order: the fewest whose removal leaves the others in order.

A record that was moved from the beginning of a million to their end is one record out of order, not a million.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

NONE = -1
Row = tuple[int, ...]


def out_of_order(offsets: Sequence[int]) -> list[int]:
    """The indexes of the elements outside of a longest increasing subsequence, ascending.

    Needs 24 bytes an element, and n log n steps (patience sorting).
    """
    tails = array("q")  # the last element of the best subsequence of each length: its value
    tail_at = array("q")  # and its index
    before = array("q")  # the index of each element's predecessor in its subsequence
    for index, offset in enumerate(offsets):
        length = bisect_left(tails, offset)
        before.append(tail_at[length - 1] if length else NONE)
        if length == len(tails):
            tails.append(offset)
            tail_at.append(index)
        else:
            tails[length] = offset
            tail_at[length] = index
    kept = bytearray(len(before))
    index = tail_at[-1] if tail_at else NONE
    while index != NONE:
        kept[index] = 1
        index = before[index]
    return [index for index, is_kept in enumerate(kept) if not is_kept]


def rows_out_of_order(rows: Iterable[Row], group_columns: int) -> Iterator[Row]:
    """The rows whose last column is out of order within their group.

    The rows come group by group, in the order that the last column should have; the first `group_columns` columns name
    the group. One group is in memory at a time, with 8 bytes for each other column, and those of `out_of_order`.
    """
    for group, members in groupby(rows, key=lambda row: tuple(row[:group_columns])):
        columns: list[array[int]] = []
        for member in members:
            if not columns:
                columns = [array("q") for _ in member[group_columns:]]
            for column, value in zip(columns, member[group_columns:], strict=True):
                column.append(value)
        for index in out_of_order(columns[-1]):
            yield (*group, *(column[index] for column in columns))
