"""Clicks for the demo: good ones, of which some are late, and bad ones of several kinds. A seed decides all of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

PAGES = ("/", "/prices", "/docs", "/docs/install", "/order", "/login", "/about")
USERS = 200
BAD_SHARE = 0.04
LATE_SHARE = 0.03
SPAN_MS = 3 * 3_600_000
LATEST_MS = 30 * 60_000

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["user", "time", "page"],
    "properties": {
        "user": {"type": "string", "minLength": 1},
        "time": {"type": "integer", "minimum": 0},
        "page": {"type": "string", "pattern": "^/"},
    },
}
"""The JSON Schema of a click."""


def clicks(count: int, *, end_ms: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Keys and values of so many records, in the order in which they arrive, in the three hours up to `end_ms`."""
    rng = random.Random(seed)
    for number in range(count):
        user = f"user-{rng.randrange(USERS)}"
        time_ms = end_ms - SPAN_MS + number * SPAN_MS // count
        if rng.random() < LATE_SHARE:
            time_ms -= rng.randrange(LATEST_MS)
        click: dict[str, object] = {"user": user, "time": time_ms, "page": rng.choice(PAGES)}
        yield user, json.dumps(click) if rng.random() >= BAD_SHARE else _bad(rng, click)


def _bad(rng: random.Random, click: dict[str, object]) -> str:
    """The click as a faulty client would send it."""
    kind = rng.randrange(4)
    if kind == 0:
        return json.dumps(click)[: rng.randrange(1, 20)]
    if kind == 1:
        return json.dumps({name: value for name, value in click.items() if name != "user"})
    if kind == 2:
        return json.dumps(click | {"time": "yesterday"})
    return json.dumps(click | {"page": "prices"})
