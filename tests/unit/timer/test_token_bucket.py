"""The numbers are those of Kafka's TokenBucketTest: 5 tokens a second, and at most those of 20 seconds."""

from __future__ import annotations

import pytest

from odradek.timer.token_bucket import TokenBucket, token_throttle_time_ms

BOUND = 5.0


@pytest.fixture
def bucket() -> TokenBucket:
    return TokenBucket(window_count=10, window_ms=2_000)


def test_tokens_are_taken_and_come_back_with_time(bucket: TokenBucket) -> None:
    assert bucket.tokens(BOUND, 0) == 100
    bucket.record(60, BOUND, 0)
    assert bucket.tokens(BOUND, 0) == 40
    bucket.record(5, BOUND, 2_000)
    assert bucket.tokens(BOUND, 2_000) == 45
    bucket.record(60, BOUND, 4_000)
    assert bucket.tokens(BOUND, 4_000) == -5
    assert token_throttle_time_ms(-5, BOUND) == 1_000
    assert bucket.tokens(BOUND, 5_000) == 0


def test_what_is_given_back_does_not_overflow_the_bucket(bucket: TokenBucket) -> None:
    bucket.record(-60, BOUND, 0)
    assert bucket.tokens(BOUND, 0) == 100
    bucket.record(60, BOUND, 2_000)
    assert bucket.tokens(BOUND, 2_000) == 40
    bucket.record(-60, BOUND, 4_000)
    assert bucket.tokens(BOUND, 4_000) == 100


def test_a_bucket_begins_full_also_when_the_clock_has_just_begun(bucket: TokenBucket) -> None:
    assert bucket.tokens(BOUND, 3) == 100


def test_a_lower_bound_lowers_what_is_in_the_bucket(bucket: TokenBucket) -> None:
    assert bucket.tokens(BOUND, 0) == 100
    assert bucket.tokens(1.0, 0) == 20


def test_a_bound_of_0_never_refills() -> None:
    assert token_throttle_time_ms(-1, 0.0) == (1 << 63) - 1
