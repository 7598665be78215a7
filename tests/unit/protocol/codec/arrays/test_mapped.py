from __future__ import annotations

from odradek.protocol.codec.arrays.mapped import SMALL, InOrder, Mapped, OneOutcome, Outcomes, Pairs
from odradek.protocol.errors import ErrorCode

DOUBLED = Mapped(lambda number: [2 * number], [1, 2, 3])


def test_it_is_read_as_a_list_would_be() -> None:
    assert len(DOUBLED) == 3
    assert list(DOUBLED) == [[2], [4], [6]]
    assert DOUBLED[-1] == [6]
    assert DOUBLED[:2] == [[2], [4]]
    assert list(reversed(DOUBLED)) == [[6], [4], [2]]
    assert [4] in DOUBLED


def test_an_empty_one_is_false() -> None:
    assert not Mapped(str, [])


def test_items_are_made_when_they_are_read() -> None:
    made = []

    def make(number: int) -> int:
        made.append(number)
        return number

    numbers = iter(Mapped(make, [1, 2, 3]))
    assert made == []
    assert next(numbers) == 1
    assert made == [1]


def test_the_same_item_is_made_anew() -> None:
    assert DOUBLED[0] is not DOUBLED[0]


def test_outcomes_become_elements_when_they_are_read() -> None:
    made: list[tuple[str, int]] = []

    def make(name: str, code: int) -> list[object]:
        made.append((name, code))
        return [name, code]

    whole: list[object] = ["whole"]
    outcomes, others = Outcomes(make), Outcomes(make)
    outcomes.add("a", ErrorCode.UNKNOWN_SERVER_ERROR)
    outcomes.append(whole)
    others.add("b", ErrorCode.INVALID_REQUEST)
    outcomes.extend(others)
    assert made == []
    assert len(outcomes) == 3
    assert list(outcomes) == [["a", -1], ["whole"], ["b", 42]]
    assert made == [("a", -1), ("b", 42)]
    assert outcomes[1] is whole
    assert outcomes[1:] == [["whole"], ["b", 42]]
    outcomes.replace(0, ["other"])
    assert list(outcomes) == [["other"], ["whole"], ["b", 42]]


def code_of(name: str, code: int) -> str:
    return f"{name}: {code}"


def test_outcomes_that_say_one_code_may_be_smaller() -> None:
    same, others, whole = Outcomes(code_of), Outcomes(code_of), Outcomes(code_of)
    many, too_many = Outcomes(code_of), Outcomes(code_of)
    for name in ("a", "b"):
        same.add(name, ErrorCode.INVALID_REQUEST)
        others.add(name, ErrorCode.INVALID_REQUEST if name == "a" else ErrorCode.NONE)
        whole.append(name)
    for number in range(SMALL):
        many.add(str(number), 0)
        too_many.add(str(number), 0)
    too_many.add("one more", 0)
    smaller = same.smaller()
    assert isinstance(smaller, OneOutcome)
    assert list(smaller) == list(smaller) == list(same) == ["a: 42", "b: 42"]
    assert (len(smaller), smaller[1], list(smaller.whole)) == (2, "b: 42", [])
    assert isinstance(many.smaller(), OneOutcome)
    for kept in (others, whole, too_many, Outcomes(code_of)):
        assert kept.smaller() is kept


def test_the_whole_elements_of_outcomes() -> None:
    outcomes = Outcomes(code_of)
    outcomes.add("a", ErrorCode.INVALID_REQUEST)
    outcomes.append("whole")
    assert list(outcomes.whole) == ["whole"]


def test_collections_are_read_in_order() -> None:
    found = InOrder(["b", "a"], {"c": 1, "a": 2}, set())
    assert (len(found), list(found), list(found), found[2]) == (4, ["b", "a", "c", "a"], ["b", "a", "c", "a"], "c")


def test_pairs_become_elements_when_they_are_read() -> None:
    pairs = Pairs(lambda name, outcome: [name, outcome])
    pairs.add("a", None)
    pairs.add("b", "failed")
    assert len(pairs) == 2
    assert list(pairs) == [["a", None], ["b", "failed"]]
    assert pairs[1] == ["b", "failed"]
    assert pairs[:1] == [["a", None]]


def test_pairs_are_extended_by_others() -> None:
    pairs, others = Pairs(lambda name, outcome: [name, outcome]), Pairs(lambda name, outcome: [name, outcome])
    pairs.add("a", None)
    others.add("b", "failed")
    pairs.extend(others)
    assert list(pairs) == [["a", None], ["b", "failed"]]
