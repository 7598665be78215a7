"""A bucket that fills with tokens at a bounded rate: a quota that allows bursts.

The bucket holds at most what comes in `window_count` windows, and begins full. Taking more than it holds makes it
negative.

The caller passes monotonic times in milliseconds and the bound, which may change.

Kafka: TokenBucket, ControllerMutationQuotaManager.throttleTimeMs.
"""

from __future__ import annotations

import math

from odradek.timer.sampled_rate import java_round


class TokenBucket:
    """The tokens of one client. `bound` is in tokens per second."""

    __slots__ = ("_last_update_ms", "_tokens", "_window_seconds")

    def __init__(self, *, window_count: int = 11, window_ms: int = 1_000) -> None:
        self._window_seconds = window_count * window_ms / 1_000
        self._tokens = 0.0
        self._last_update_ms: int | None = None

    def tokens(self, bound: float, now_ms: int) -> float:
        """What is in the bucket now; negative if too much was taken. Kafka: TokenBucket.measure."""
        self._refill(bound, now_ms)
        return self._tokens

    def record(self, amount: float, bound: float, now_ms: int) -> None:
        """Take `amount` tokens, also those that are not there yet."""
        self._refill(bound, now_ms)
        self._tokens = min(self._tokens - amount, self._window_seconds * bound)

    def _refill(self, bound: float, now_ms: int) -> None:
        burst = self._window_seconds * bound
        if self._last_update_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(self._tokens + bound * ((now_ms - self._last_update_ms) / 1_000), burst)
        self._last_update_ms = now_ms


def token_throttle_time_ms(tokens: float, bound: float) -> int:
    """The time until a bucket with `tokens`, which is negative, is back at 0."""
    return java_round(-tokens / bound * 1_000 if bound else math.inf)
