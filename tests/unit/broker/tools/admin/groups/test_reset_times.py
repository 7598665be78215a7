from __future__ import annotations

import pytest

from odradek.broker.tools.admin.groups.reset_times import parse_datetime, parse_duration
from odradek.broker.tools.command.failures import CommandFailed

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02T00:00:00.000", DAY_MS),
        ("1970-01-02T00:00:00.000Z", DAY_MS),
        ("1970-01-02T01:30:00.000+01:30", DAY_MS),
        ("1970-01-01T22:00:00.123-0200", DAY_MS + 123),
        ("1970-01-02T02:00:00.000+02", DAY_MS),
        ("1970-1-2T0:0:0.5", DAY_MS + 5),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1970-01-02",
        "1970-01-02T00:00:00",
        "1970-02-30T00:00:00.000",
        "1970-01-02T25:00:00.000",
        "1970-01-02T00:00:00.000X",
        "1970-01-02T00:00:00.1000",
        "1970-01-02T00:00:00.10000000000",
        "10000000000-01-02T00:00:00.000",
        "1970-01-02T00:00:00.000+25:00",
    ],
)
def test_times_that_are_not_valid_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match=r"timestamp|Unparseable"):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P1D", DAY_MS),
        ("PT1H", 3_600_000),
        ("p1dt2h3m4.5s", DAY_MS + 2 * 3_600_000 + 3 * 60_000 + 4_500),
        ("PT0.0019S", 1),
        ("PT-1.5S", -1_500),
        ("-PT1M", -60_000),
        ("P-1D", -DAY_MS),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "PT1", "P1.5D"])
def test_durations_that_are_not_valid_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="Text cannot be parsed to a Duration"):
        parse_duration(text)
