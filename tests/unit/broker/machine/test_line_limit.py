"""Floods of log lines that clients cause."""

from __future__ import annotations

import logging

import pytest

from odradek.broker.machine.line_limit import BURST, KINDS_MAX, LINE_CHARACTERS_MAX, LINES_PER_S, LineLimit, cut


class Lines:
    """Records of a logger, as a handler gets them; `printed` are those that pass."""

    def __init__(self) -> None:
        self.limit = LineLimit()
        self.now_s = 1_000.0
        self.printed: list[str] = []

    def log(self, message: str, *args: object, name: str = "odradek.broker.apis", level: int = logging.INFO) -> None:
        record = logging.LogRecord(name, level, __file__, 1, message, args, None)
        record.created = self.now_s
        if self.limit.filter(record):
            self.printed.append(record.getMessage())


@pytest.fixture
def lines() -> Lines:
    return Lines()


def test_a_flood_is_cut_down_and_counted(lines: Lines) -> None:
    for number in range(100_000):
        lines.log("Refused %d", number)
    assert lines.printed == [f"Refused {number}" for number in range(BURST)]
    lines.now_s += 1 / LINES_PER_S
    lines.log("Refused %d", 7)
    assert lines.printed[BURST:] == [f"Refused 7 ({100_000 - BURST} more like this since the last line)"]


@pytest.mark.parametrize("part", ["network.authentication", "security.sasl.oauth.oauthbearer"])
def test_refused_clients_are_limited(lines: Lines, part: str) -> None:
    for _ in range(BURST + 1):
        lines.log("Refused", name=f"odradek.broker.{part}")
    assert len(lines.printed) == BURST


def test_lines_in_the_long_run(lines: Lines) -> None:
    for _ in range(100):
        for _ in range(1_000):
            lines.log("Refused")
        lines.now_s += 1
    assert len(lines.printed) == BURST + 99 * LINES_PER_S


def test_kinds_are_counted_apart(lines: Lines) -> None:
    for _ in range(BURST + 1):
        lines.log("one")
    lines.log("another")
    assert lines.printed[-1] == "another"


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("odradek.controller", logging.INFO),
        ("odradek.state.change", logging.INFO),
        ("odradek.broker.partition", logging.INFO),
        ("odradek.broker.apis", 10),
    ],
)
def test_state_changes_and_wanted_details_are_not_limited(lines: Lines, name: str, level: int) -> None:
    for _ in range(BURST + 1):
        lines.log("line", name=name, level=level)
    assert len(lines.printed) == BURST + 1


def test_number_of_kinds_is_bounded(lines: Lines) -> None:
    for number in range(KINDS_MAX * 3):
        lines.log(f"kind {number}")
    assert len(lines.limit._kinds) <= KINDS_MAX


def test_clock_that_goes_back_gives_no_lines(lines: Lines) -> None:
    for _ in range(BURST + 5):
        lines.now_s -= 100
        lines.log("line")
    assert len(lines.printed) == BURST


def test_long_messages_are_cut() -> None:
    assert cut("x" * LINE_CHARACTERS_MAX) == "x" * LINE_CHARACTERS_MAX
    longer = cut("x" * (LINE_CHARACTERS_MAX + 1))
    assert longer.endswith(f"x... ({LINE_CHARACTERS_MAX + 1} characters)")
