"""Every expression of the product takes a time that grows with the length of a text, not with its square.

Clients choose the texts. Each expression gets its shortest examples, cut off at each character, then one part of an
example many times, then the end of the text or a character that fits nowhere.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeGuard

import pytest

from tests.support.examples_of_expressions import examples
from tests.test_house_rules import PACKAGES, REPOSITORY

SUSPICIOUS_S: Final = 0.003
LONG_S: Final = 10 * SUSPICIOUS_S
"""A text that takes longer is made shorter: how the time grows is seen sooner."""
SIZES: Final = (250, 4000)
"""The first is small enough for an expression whose time grows with the cube."""
ENDS: Final = ("", "\0")
SEARCHES: Final = ("search", "finditer", "findall", "split", "sub")

# Expressions whose texts no client can send.
NOT_FOR_CLIENTS: Final = {
    "broker/security/tls/principal_mapper.py:_SPLITTER": "the rules stand in the file that the broker starts with",
    "broker/tools/admin/configs/config_entities.py:_BETWEEN_CONFIGS": "what the user of a command types",
    "broker/tools/admin/configs/config_entities.py:_BETWEEN_KEY_AND_VALUE": "what the user of a command types",
}


@cache
def expressions() -> dict[str, tuple[re.Pattern[str], bool]]:
    """The expressions of all modules, and whether each looks for its place in a text, as `search` does."""
    found = {}
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            source = path.read_text()
            place = path.relative_to(REPOSITORY)
            if "re.compile(" in source:
                module = importlib.import_module(".".join(("odradek", *place.with_suffix("").parts)))
                for name, value in vars(module).items():
                    if _is_of_text(value) and re.search(rf"^{name}\b.* = re\.compile", source, re.MULTILINE):
                        searches = re.search(rf"\b{name}\.({'|'.join(SEARCHES)})\(", source) is not None
                        found[f"{place}:{name}"] = (value, searches)
    return found


def _is_of_text(value: object) -> TypeGuard[re.Pattern[str]]:
    return isinstance(value, re.Pattern) and isinstance(value.pattern, str)


def use(pattern: re.Pattern[str], *, searches: bool) -> Callable[[str], object]:
    def found(text: str) -> int:
        return sum(1 for _ in pattern.finditer(text))

    return found if searches else pattern.fullmatch


def hostile_texts(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """What a text begins with, what it repeats, and how it ends."""
    texts = examples(pattern)
    heads = {text[:end] for text in texts for end in range(len(text) + 1)}
    parts = (
        {text[at : at + size] for text in texts for at in range(len(text)) for size in (1, 2, 3)} | texts | {" ", "a"}
    )
    for head in sorted(heads):
        for part in sorted(parts - {""}):
            for end in ENDS:
                yield head, part, end


def seconds(match: Callable[[str], object], text: str, times: int = 1) -> float:
    """Processor time, the shortest of some."""
    shortest = float("inf")
    for _ in range(times):
        start = time.process_time()
        match(text)
        shortest = min(shortest, time.process_time() - start)
    return shortest


def slow_text(pattern: re.Pattern[str], *, searches: bool) -> str | None:
    """The shape of a text whose time more than triples when it is twice as long."""
    match = use(pattern, searches=searches)
    for head, part, end in hostile_texts(pattern):

        def text(size: int, head: str = head, part: str = part, end: str = end) -> str:
            return head + part * (size // len(part)) + end

        for size in SIZES:
            if (took := seconds(match, text(size))) > SUSPICIOUS_S:
                while took > LONG_S:
                    size //= 2
                    took = seconds(match, text(size))
                once = seconds(match, text(size), 3)
                if once > SUSPICIOUS_S / 2 and seconds(match, text(2 * size), 3) > 3 * once:
                    return f"{head!r} + {part!r} * n + {end!r}"
    return None


@pytest.mark.parametrize("place", sorted(expressions().keys() - NOT_FOR_CLIENTS.keys()))
def test_the_time_grows_with_the_length(place: str) -> None:
    pattern, searches = expressions()[place]
    assert slow_text(pattern, searches=searches) is None


def test_what_no_client_sends_is_still_there() -> None:
    assert NOT_FOR_CLIENTS.keys() <= expressions().keys()


@pytest.mark.parametrize(
    ("expression", "searches"),
    [
        (r"([+-]?)0*([0-9]{1,19})[0-9]*", False),
        (r"[+-]?(NaN|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", False),
        (r"\s*,\s*", True),
        (r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}", True),
        (r"-+BEGIN\s+([A-Z0-9 ]+?)\s*-+\s+([a-zA-Z0-9/+=\s]*)-+END\s[^-]*-+", True),
        (r"-++BEGIN\s++[A-Z]++-++\s++(?:[\w-]+:[^\r\n]*[\r\n]+)*([a-z\s]*)-+END", True),
    ],
)
def test_an_expression_that_tries_again_is_found(expression: str, searches: bool) -> None:
    assert slow_text(re.compile(expression), searches=searches) is not None
