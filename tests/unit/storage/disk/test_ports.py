"""The inline pool: runs work in place, passes OSError as a value and raises every other exception."""

from __future__ import annotations

import pytest

from odradek.storage.disk.ports import InlineIoPool


def test_result_and_error_reach_the_callback() -> None:
    answers: list[object] = []
    InlineIoPool().submit(lambda: 7, answers.append)
    failure = OSError(5, "Input/output error")

    def fail() -> int:
        raise failure

    InlineIoPool().submit(fail, answers.append)
    assert answers == [7, failure]


def test_bugs_are_not_swallowed() -> None:
    def fail() -> int:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        InlineIoPool().submit(fail, lambda _: None)
