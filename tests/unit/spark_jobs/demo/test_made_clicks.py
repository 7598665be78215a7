"""The clicks of the demo: the same each time, mostly good, some late, some bad."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from spark_jobs.demo.made_clicks import SCHEMA, SPAN_MS, clicks

END_MS = 1_772_359_200_000


def made(count: int = 2_000) -> list[tuple[str, str]]:
    return list(clicks(count, end_ms=END_MS))


def is_good(value: str) -> bool:
    try:
        return Draft202012Validator(SCHEMA).is_valid(json.loads(value))
    except ValueError:
        return False


def test_the_same_clicks_each_time() -> None:
    assert made() == made()
    assert len(made(7)) == 7


def test_some_are_bad_and_most_are_good() -> None:
    good = sum(is_good(value) for _, value in made())
    assert 0.92 * 2_000 < good < 0.98 * 2_000


def test_good_clicks_are_keyed_by_user_and_some_are_late() -> None:
    good = [(key, json.loads(value)) for key, value in made() if is_good(value)]
    assert all(key == click["user"] for key, click in good)
    times = [click["time"] for _, click in good]
    assert END_MS - 2 * SPAN_MS < min(times) < max(times) < END_MS
    newest, late = 0, 0
    for time_ms in times:
        late += time_ms < newest - 300_000
        newest = max(newest, time_ms)
    assert late > 20
