"""Values that are compared by their fields."""

from __future__ import annotations

from odradek.controller.model.compared_by_fields import ComparedByFields


class Point(ComparedByFields):
    __slots__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


class OtherPoint(Point):
    __slots__ = ("x", "y")


class Nothing(ComparedByFields):
    __slots__ = ()


def test_values_of_one_class_with_equal_fields_are_equal() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != OtherPoint(1, 2)
    assert Point(1, 2) != (1, 2)
    assert Nothing() == Nothing()
    assert {Point(1, 2), Point(1, 2), Nothing(), Nothing()} == {Nothing(), Point(1, 2)}


def test_the_text_names_class_and_fields() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2)"
    assert repr(Nothing()) == "Nothing()"
