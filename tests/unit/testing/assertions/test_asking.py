from __future__ import annotations

import asyncio

import pytest

from odradek.testing.assertions.asking import Deadline, Steps, answered, answered_later, ask
from odradek.timer.clock import ManualClock


class Echo:
    """Answers each question with its argument."""

    def ask(self, name: str, /, **arguments: object) -> object:
        return arguments[name]


class LateEcho:
    async def ask(self, name: str, /, **arguments: object) -> object:
        await asyncio.sleep(0)
        return arguments[name]


def added() -> Steps[int]:
    first = yield from ask(int, "a", a=1)
    second = yield from ask(int, "b", b=2)
    return first + second


def test_steps_are_the_same_for_both_kinds_of_callers() -> None:
    assert answered(Echo(), added()) == 3
    assert asyncio.run(answered_later(LateEcho(), added())) == 3


def test_an_answer_of_another_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="the question a was answered with 'x', not with a int"):
        answered(Echo(), ask(int, "a", a="x"))


def test_a_deadline() -> None:
    clock = ManualClock(1_000)
    deadline = Deadline(2.5, clock.monotonic_ms)
    assert (str(deadline), deadline.left_s, deadline.is_over) == ("2.5 s", 2.5, False)
    clock.advance(3_000)
    assert (deadline.left_s, deadline.is_over) == (0, True)
