from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.error_patterns import PATTERNS_MAX, ErrorPattern, ErrorPatterns, error_about
from odradek.protocol.errors import ErrorCode, KafkaError


def unknown(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def test_errors_that_differ_in_the_name_alone_are_one_object() -> None:
    patterns = ErrorPatterns()
    first, second = patterns.kept(unknown("x1"), "x1"), patterns.kept(unknown("x2"), "x2")
    assert first is second
    assert error_about("x1", first).message == "The topic 'x1' does not exist."
    assert error_about("x2", first).code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_of_another_code_is_another_one() -> None:
    patterns = ErrorPatterns()
    first = patterns.kept(KafkaError(ErrorCode.INVALID_REQUEST, "no x"), "x")
    assert patterns.kept(KafkaError(ErrorCode.INVALID_CONFIG, "no x"), "x") is not first


@pytest.mark.parametrize("name", ["", "e", "topic", "\0", "t\0", "'"])
def test_any_name_comes_back(name: str) -> None:
    kept = ErrorPatterns().kept(unknown(name), name)
    assert error_about(name, kept).message == unknown(name).message


@given(st.text("ab\0", max_size=8), st.text("ab\0", max_size=3))
def test_any_message_comes_back(message: str, name: str) -> None:
    kept = ErrorPatterns().kept(KafkaError(ErrorCode.INVALID_REQUEST, message), name)
    assert error_about(name, kept).message == message


def test_beyond_the_limit_errors_stay_as_they_are() -> None:
    patterns = ErrorPatterns()
    kept = [patterns.kept(KafkaError(ErrorCode.INVALID_REQUEST, f"{n} of x"), "x") for n in range(PATTERNS_MAX + 1)]
    assert [type(one) for one in kept[-2:]] == [ErrorPattern, KafkaError]
    assert [error_about("x", one).message for one in kept] == [f"{n} of x" for n in range(PATTERNS_MAX + 1)]
    assert type(patterns.kept(KafkaError(ErrorCode.INVALID_REQUEST, "0 of y"), "y")) is ErrorPattern
