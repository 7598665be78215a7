"""Replays rates.txt, written by CaptureRates.java: what Kafka's Rate, SimpleRate and TokenBucket measure.

Each line has the pause in ms, the amount, and Kafka's numbers; `new COUNT WINDOW_MS BOUND` begins a scenario.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.timer.sampled_rate import Rate, SimpleRate, throttle_time_ms
from odradek.timer.token_bucket import TokenBucket, token_throttle_time_ms

RATES = Path(__file__).with_name("rates.txt")


def scenarios() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in RATES.read_text().splitlines():
        if line.startswith("new "):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


@pytest.mark.parametrize(("start", "lines"), scenarios(), ids=[start for start, _ in scenarios()])
def test_kafka_measures_the_same(start: str, lines: list[str]) -> None:
    _, count, window_ms, bound_text = start.split()
    bound = float(bound_text)
    rate = Rate(window_count=int(count), window_ms=int(window_ms))
    simple = SimpleRate(window_count=int(count), window_ms=int(window_ms))
    bucket = TokenBucket(window_count=int(count), window_ms=int(window_ms))
    now_ms = 0
    for line in lines:
        words = line.split()
        kafka = dict(zip(words[::2], words[1::2], strict=True))
        now_ms += int(kafka["at"])
        if kafka["record"] != "nothing":
            rate.record(float(kafka["record"]), now_ms)
            simple.record(float(kafka["record"]), now_ms)
            bucket.record(float(kafka["record"]), bound, now_ms)
        measured = rate.measure(now_ms)
        window_size_ms = rate.window_size_ms(now_ms)
        assert measured == pytest.approx(float(kafka["rate"]), rel=1e-12), line
        assert window_size_ms == int(kafka["window"]), line
        assert throttle_time_ms(measured, bound, window_size_ms) == int(kafka["throttle"]), line
        assert simple.measure(now_ms) == pytest.approx(float(kafka["simple"]), rel=1e-12), line
        tokens = bucket.tokens(bound, now_ms)
        assert tokens == pytest.approx(float(kafka["tokens"]), rel=1e-12, abs=1e-9), line
        assert token_throttle_time_ms(tokens, bound) == int(kafka["wait"]), line
