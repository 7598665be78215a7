from __future__ import annotations

import pytest

from odradek.broker.tools.top.figures import Figures
from odradek.broker.tools.top.screen_state import ScreenState, split_keys

TOPICS = ["topic", "records_per_second", "size_bytes"]
FIGURES = Figures(
    {},
    [],
    [
        {"topic": "a", "internal": False, "records_per_second": 1.0, "size_bytes": 9},
        {"topic": "b", "internal": False, "records_per_second": 5.0, "size_bytes": 0},
        {"topic": "c", "internal": False, "records_per_second": 1.0, "size_bytes": 4},
        {"topic": "x", "internal": True, "records_per_second": 9.0, "size_bytes": 1},
    ],
    [],
)


def pressed(*keys: bytes, state: ScreenState = ScreenState()) -> ScreenState:  # noqa: B008
    for key in keys:
        state = state.key(key, TOPICS)
    return state


def topics(state: ScreenState) -> str:
    return "".join(str(row["topic"]) for row in state.rows(FIGURES, "topics"))


def test_the_busiest_come_first() -> None:
    assert topics(ScreenState()) == "bac", "equal ones by name"


def test_sorting() -> None:
    assert topics(pressed(b"s")) == "acb", "by size"
    assert topics(pressed(b"s", b"s")) == "abc", "by name"
    assert topics(pressed(b"S")) == "abc"
    assert topics(pressed(b"S", b"r")) == "cba"
    assert topics(pressed(b"r", b"r")) == "bac"


def test_scrolling() -> None:
    assert topics(pressed(b"j")) == "ac"
    assert topics(pressed(b"\x1b[B", b"\x1b[B", b"j", b"j")) == "c", "the last row stays"
    assert topics(pressed(b"j", b"k", b"\x1b[A")) == "bac"


def test_internal_topics() -> None:
    assert topics(pressed(b"i")) == "xbac"
    assert topics(pressed(b"i", b"i")) == "bac"


def test_tables() -> None:
    assert pressed(b"\t").table == "groups"
    assert pressed(b"\t", b"\t").table == "brokers"
    assert pressed(b"\x1b[Z").table == "brokers"


def test_pause() -> None:
    assert pressed(b" ").is_paused
    assert not pressed(b" ", b" ").is_paused


@pytest.mark.parametrize("key", [b"q", b"Q", b"\x1b", b"\x03", b"\x04"])
def test_the_end(key: bytes) -> None:
    assert pressed(key).is_over


def test_other_keys_and_tables_without_rows() -> None:
    assert pressed(b"x", b"\xff") == ScreenState()
    assert ScreenState().key(b"s", []) == ScreenState()
    assert ScreenState().rows(Figures({}, [], [], []), "groups") == []


def test_what_a_terminal_sends() -> None:
    assert split_keys(b"a\x1b[A\x1b[Zq") == [b"a", b"\x1b[A", b"\x1b[Z", b"q"]
    assert split_keys(b"\x1b") == [b"\x1b"]
