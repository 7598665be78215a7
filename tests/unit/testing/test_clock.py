from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from odradek.testing import AsyncBroker, Broker
from odradek.testing.clock import duration_ms


@pytest.mark.parametrize(
    ("duration", "expected_ms"),
    [
        ("7d", 604_800_000),
        ("1h 30m", 5_400_000),
        ("1h30min", 5_400_000),
        ("250ms", 250),
        ("0.5 s", 500),
        ("2w", 1_209_600_000),
        (1500, 1500),
        (timedelta(seconds=1, microseconds=999), 1000),
    ],
)
def test_durations(duration: str | int | timedelta, expected_ms: int) -> None:
    assert duration_ms(duration) == expected_ms


@pytest.mark.parametrize("duration", ["", "7", "7 days", "-1s", "1s2", "d"])
def test_other_texts_are_refused(duration: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        duration_ms(duration)


def test_other_types_are_refused() -> None:
    for duration in (1.5, None, True):
        with pytest.raises(TypeError):
            duration_ms(duration)  # type: ignore[arg-type]


def test_the_clock_of_a_broker_goes_on_from_where_it_was_advanced_to_and_a_reset_sets_it_back() -> None:
    with Broker() as broker:
        before_ms = broker.clock.time_ms()
        broker.clock.advance("1d")
        assert 0 <= broker.clock.time_ms() - before_ms - 86_400_000 < 60_000
        broker.reset()
        assert 0 <= broker.clock.time_ms() - before_ms < 60_000
        with pytest.raises(ValueError, match="not by -1 ms"):
            broker.clock.advance(-1)


def test_the_clock_of_an_asynchronous_broker() -> None:
    async def test() -> None:
        async with AsyncBroker() as broker:
            before_ms = await broker.clock.time_ms()
            await broker.clock.advance(timedelta(days=1))
            assert 0 <= await broker.clock.time_ms() - before_ms - 86_400_000 < 60_000

    asyncio.run(test())
