from __future__ import annotations

from odradek.protocol.made_once import FEW, REMEMBERED, made_once


def make(name: str, code: int) -> list[object]:
    return [name, code]


def test_equal_ones_of_many_are_one_object() -> None:
    made = made_once(make, FEW + 1)
    first = made("a", 1)
    assert first == ["a", 1]
    assert made("b", 1) == ["b", 1]
    assert made("a", 2) == ["a", 2]
    assert made("a", 1) is first


def test_a_few_are_made_each() -> None:
    assert made_once(make, FEW) is make


def test_another_call_makes_others() -> None:
    assert made_once(make, FEW + 1)("a", 1) is not made_once(make, FEW + 1)("a", 1)


def test_only_some_are_remembered() -> None:
    made = made_once(make, FEW + 1)
    first = made("a", 0)
    for code in range(1, REMEMBERED + 1):
        made("a", code)
    again = made("a", 0)
    assert again == first
    assert again is not first
