from __future__ import annotations

from odradek.broker.tools.command.columns import column_lines, tabbed_lines, widest


def test_columns_are_padded_except_one_without_a_width() -> None:
    lines = list(column_lines([("A", "B", "C"), ("longer", None, 1)], (4, 2, 0)))
    assert lines == ["A    B  C", "longer -  1"]


def test_columns_with_tabs() -> None:
    assert list(tabbed_lines([("Id", "State"), (12345, "x")])) == ["Id   \tState\t", "12345\tx    \t"]


def test_a_column_is_as_wide_as_its_longest_cell() -> None:
    assert (widest(3, ["a", 12345, None]), widest(3, [])) == (5, 3)
