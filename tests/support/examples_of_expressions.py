"""The shortest texts that a regular expression matches, from its syntax tree: one for each of its alternatives."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, cast

# A node of the tree is a pair of its kind and what belongs to it.
Node = tuple[object, object]
Tree = Sequence[Node]

_PARSER: Final = importlib.import_module("re._parser")
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CANDIDATES: Final = "a0 -/:,=.$\n\t\x01é"
_CATEGORIES: Final = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}


def examples(pattern: re.Pattern[str]) -> set[str]:
    """Texts of the pattern with each optional part once; what looks around and refers to groups counts as empty."""
    return set(_texts(cast("Tree", _PARSER.parse(pattern.pattern, pattern.flags))))


def _texts(tree: Tree) -> list[str]:
    """Each node in its first form, then one text for every other form of a node."""
    forms = [_forms(str(kind), value) for kind, value in tree]
    first = [form[0] for form in forms]
    texts = ["".join(first)]
    for at, form in enumerate(forms):
        texts += ["".join((*first[:at], other, *first[at + 1 :])) for other in form[1:]]
    return texts


def _forms(kind: str, value: object) -> list[str]:
    if kind == "LITERAL":
        return [chr(cast("int", value))]
    if kind == "NOT_LITERAL":
        return [next(char for char in _CANDIDATES if ord(char) != value)]
    if kind == "ANY":
        return ["a"]
    if kind == "IN":
        return [_member(cast("Tree", value))]
    if kind == "BRANCH":
        return [text for tree in cast("tuple[None, Iterable[Tree]]", value)[1] for text in _texts(tree)]
    if kind == "SUBPATTERN":
        return _texts(cast("tuple[object, object, object, Tree]", value)[3])
    if kind == "ATOMIC_GROUP":
        return _texts(cast("Tree", value))
    if kind in _REPEATS:
        low, _, tree = cast("tuple[int, int, Tree]", value)
        return [text * max(low, 1) for text in _texts(tree)]
    return [""]


def _member(items: Tree) -> str:
    """A character of a set: `[^a-z]`."""
    negated = str(items[0][0]) == "NEGATE"
    for char in (*_CANDIDATES, *(chr(code) for code in range(256))):
        if any(_has(str(kind), value, char) for kind, value in items[negated:]) is not negated:
            return char
    raise AssertionError(f"no character for {items}")


def _has(kind: str, value: object, char: str) -> bool:
    if kind == "LITERAL":
        return ord(char) == value
    if kind == "RANGE":
        low, high = cast("tuple[int, int]", value)
        return low <= ord(char) <= high
    name = str(value)
    if name in _CATEGORIES:
        return re.fullmatch(_CATEGORIES[name], char) is not None
    return re.fullmatch(_CATEGORIES[name.replace("_NOT_", "_")], char) is None
