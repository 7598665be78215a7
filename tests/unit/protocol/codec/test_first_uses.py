from __future__ import annotations

import pytest

from odradek.protocol.codec import first_uses
from odradek.protocol.codec.codec import EncodeError
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.field_walk import WRITTEN_ELEMENTS_MAX
from odradek.protocol.codec.first_uses import WALKED_USES, decode, encode
from odradek.protocol.codec.schema import INT32, Message, array, int32


class Question(Message, versions="0-1", flexible="none"):
    """Of these tests alone, so that nothing else has generated functions for it."""

    numbers: list[int] = array(INT32, "0+")
    answer: int = int32("1+")


@pytest.fixture(autouse=True)
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_uses, "_walked", {})
    Question.ENCODERS.clear()
    Question.DECODERS.clear()


def test_functions_are_generated_for_what_is_used_again() -> None:
    question = Question(numbers=[1, 2], answer=42)
    for use in range(1, WALKED_USES + 2):
        encoded = encode(question, 1)
        assert decode(Question, b"x" + encoded, 1, None, 1) == question
        assert ([*Question.ENCODERS], [*Question.DECODERS]) == (([], []) if use <= WALKED_USES else ([1], [1]))


def test_what_is_not_small_has_functions_at_once() -> None:
    question = Question(numbers=[7] * (WRITTEN_ELEMENTS_MAX + 1))
    assert decode(Question, encode(question, 0), 0) == question
    assert [*Question.ENCODERS] == [0]


def test_errors_are_those_of_the_codec() -> None:
    with pytest.raises(EncodeError, match=r"non-default Question\.answer at version 0"):
        encode(Question(answer=1), 0)
    with pytest.raises(EncodeError, match="has no version 2"):
        encode(Question(), 2)
    with pytest.raises(DecodeError, match="claims 9 elements"):
        decode(Question, b"\0\0\0\x09", 0)
