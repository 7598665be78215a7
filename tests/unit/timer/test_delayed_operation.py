from __future__ import annotations

import pytest

from odradek.timer.clock import ManualClock
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.system_timer import SystemTimer


class Operation(DelayedOperation):
    def __init__(self, delay_ms: int = 100) -> None:
        super().__init__(delay_ms)
        self.calls: list[str] = []

    def on_complete(self) -> None:
        self.calls.append("on_complete")

    def on_expiration(self) -> None:
        self.calls.append("on_expiration")


def test_completes_exactly_once() -> None:
    operation = Operation()
    assert not operation.is_completed
    assert operation.force_complete() is True
    assert operation.force_complete() is False
    assert operation.is_completed
    assert operation.calls == ["on_complete"]


def test_time_out_completes_and_then_expires() -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    operation = Operation(delay_ms=100)
    timer.add(operation)
    clock.advance(99)
    timer.advance()
    assert operation.calls == []
    clock.advance(1)
    timer.advance()
    assert operation.calls == ["on_complete", "on_expiration"]


def test_completing_cancels_the_time_out() -> None:
    timer = SystemTimer(ManualClock())
    operation = Operation()
    timer.add(operation)
    operation.force_complete()
    assert timer.size == 0


def test_a_completed_operation_does_not_expire() -> None:
    operation = Operation()
    operation.force_complete()
    operation.run()
    assert operation.calls == ["on_complete"]


def test_completing_oneself_from_on_complete_is_once_too() -> None:
    class Eager(Operation):
        def on_complete(self) -> None:
            super().on_complete()
            assert self.force_complete() is False

    operation = Eager()
    operation.run()
    assert operation.calls == ["on_complete", "on_expiration"]


def test_an_operation_that_raised_while_completing_stays_completed() -> None:
    class Broken(Operation):
        def on_complete(self) -> None:
            super().on_complete()
            raise RuntimeError("a bug")

    operation = Broken()
    with pytest.raises(RuntimeError, match="a bug"):
        operation.run()
    assert operation.is_completed
    assert operation.force_complete() is False
    assert operation.calls == ["on_complete"]


def test_subclasses_must_implement_try_complete_and_on_complete() -> None:
    bare = DelayedOperation(0)
    bare.on_expiration()
    with pytest.raises(NotImplementedError):
        bare.try_complete()
    with pytest.raises(NotImplementedError):
        bare.on_complete()
