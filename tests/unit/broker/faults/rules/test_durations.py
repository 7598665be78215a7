from __future__ import annotations

import pytest

from odradek.broker.faults.rules.durations import to_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("1.5s", 1_500), (" 2m ", 120_000), ("1h", 3_600_000), ("7d", 604_800_000), (250, 250), (2.4, 2)],
)
def test_what_people_write(text: object, ms: int) -> None:
    assert to_ms(text) == ms


@pytest.mark.parametrize("text", ["", "soon", "-1s", -1, "1 s 2", "9" * 30, "1w", None, True, [], float("inf")])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        to_ms(text)
