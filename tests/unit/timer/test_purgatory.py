"""Operations that wait complete once, leave nothing behind, and may do anything to the purgatory as they complete."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.timer.clock import ManualClock
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.system_timer import SystemTimer


class Operation(DelayedOperation):
    """Can complete as soon as `completable` is set."""

    def __init__(self, delay_ms: int = 1_000, *, then: Callable[[], object] = lambda: None) -> None:
        super().__init__(delay_ms)
        self.completable = False
        self.then = then
        self.attempts = 0
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        self.attempts += 1
        return self.completable and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1
        self.then()

    def on_expiration(self) -> None:
        self.expirations += 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timer(clock: ManualClock) -> SystemTimer:
    return SystemTimer(clock)


@pytest.fixture
def purgatory(timer: SystemTimer) -> DelayedOperationPurgatory[Operation]:
    return DelayedOperationPurgatory("test", timer)


def assert_empty(purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer) -> None:
    assert (purgatory.watched, purgatory.num_delayed, purgatory.num_keys, timer.size) == (0, 0, 0, 0)
    assert timer.next_deadline_ms() is None


def test_an_operation_that_can_complete_at_once_is_not_watched(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    operation = Operation()
    operation.completable = True
    assert purgatory.try_complete_else_watch(operation, ["a", "b"]) is True
    assert (operation.attempts, operation.completions) == (1, 1)
    assert_empty(purgatory, timer)


def test_an_operation_that_the_caller_has_tried_only_waits(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer, clock: ManualClock
) -> None:
    operation = Operation(delay_ms=5)
    purgatory.watch(operation, ["a", "b", "a"])
    assert (operation.attempts, purgatory.watched, purgatory.num_delayed) == (0, 2, 1)
    clock.advance(5)
    timer.advance()
    assert (operation.completions, operation.expirations) == (1, 1)
    assert_empty(purgatory, timer)


def test_an_operation_that_cannot_is_tried_twice_and_watched_under_each_key(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    operation = Operation()
    assert purgatory.try_complete_else_watch(operation, ["a", "b"]) is False
    assert (operation.attempts, operation.completions) == (2, 0)
    assert (purgatory.watched, purgatory.num_delayed, purgatory.num_keys, timer.size) == (2, 1, 2, 1)


def test_a_key_given_twice_counts_once(purgatory: DelayedOperationPurgatory[Operation]) -> None:
    operation = Operation()
    purgatory.try_complete_else_watch(operation, ["a", "a"])
    assert purgatory.watched == 1
    operation.completable = True
    assert purgatory.check_and_complete("a") == 1


def test_an_operation_without_a_key_is_refused(purgatory: DelayedOperationPurgatory[Operation]) -> None:
    with pytest.raises(ValueError, match="without a key"):
        purgatory.try_complete_else_watch(Operation(), [])


def test_an_operation_waits_in_one_purgatory_at_a_time(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    operation = Operation()
    purgatory.try_complete_else_watch(operation, ["a"])
    for other in (purgatory, DelayedOperationPurgatory[Operation]("other", timer)):
        with pytest.raises(ValueError, match="watched already"):
            other.try_complete_else_watch(operation, ["b"])


def test_checking_a_key_completes_those_that_can_in_order_of_arrival(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    order: list[int] = []
    operations = [Operation(then=lambda index=index: order.append(index)) for index in range(4)]  # type: ignore[misc]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert purgatory.check_and_complete("a") == 0
    for index in (3, 1):
        operations[index].completable = True
    assert purgatory.check_and_complete("unknown") == 0
    assert purgatory.check_and_complete("a") == 2
    assert order == [1, 3]
    assert purgatory.check_and_complete("b") == 0, "they have left the other list as well"
    assert (purgatory.watched, purgatory.num_delayed, timer.size) == (4, 2, 2)


def test_time_out_completes_and_leaves_every_list(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer, clock: ManualClock
) -> None:
    short, long = Operation(delay_ms=10), Operation(delay_ms=20)
    purgatory.try_complete_else_watch(short, ["a"])
    purgatory.try_complete_else_watch(long, ["a", "b"])
    clock.advance(10)
    timer.advance()
    assert (short.completions, short.expirations, long.completions) == (1, 1, 0)
    assert (purgatory.watched, purgatory.num_delayed) == (2, 1)
    clock.advance(10)
    timer.advance()
    assert (long.completions, long.expirations) == (1, 1)
    assert_empty(purgatory, timer)


def test_an_operation_that_checks_complete_does_not_expire(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer, clock: ManualClock
) -> None:
    operation = Operation(delay_ms=10)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.completable = True
    purgatory.check_and_complete("a")
    clock.advance(100)
    assert timer.advance() == 0
    assert (operation.completions, operation.expirations) == (1, 0)


def test_a_zero_time_out_expires_in_the_next_advance(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    operation = Operation(delay_ms=0)
    assert purgatory.try_complete_else_watch(operation, ["a"]) is False
    assert operation.completions == 0
    timer.advance()
    assert operation.expirations == 1
    assert_empty(purgatory, timer)


def test_twenty_thousand_time_outs_under_keys_never_checked_leave_nothing(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer, clock: ManualClock
) -> None:
    class Quiet(DelayedOperation):
        __slots__ = ()

        def try_complete(self) -> bool:
            return False

        def on_complete(self) -> None:
            pass

    quiet: DelayedOperationPurgatory[Quiet] = DelayedOperationPurgatory("quiet", timer)
    for number in range(20_000):
        quiet.try_complete_else_watch(Quiet(1 + number % 500), [number, -number % 1_000])
    assert quiet.num_delayed == 20_000
    clock.advance(500)
    assert timer.advance() == 20_000
    assert (quiet.watched, quiet.num_delayed, quiet.num_keys, timer.size) == (0, 0, 0, 0)
    assert_empty(purgatory, timer)


def test_completing_another_from_on_complete_while_a_key_is_checked(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    second, third = Operation(), Operation()
    first = Operation(then=second.force_complete)
    for operation in (first, second, third):
        purgatory.try_complete_else_watch(operation, ["a"])
    first.completable = second.completable = third.completable = True
    assert purgatory.check_and_complete("a") == 2, "the second was completed by the first, not by the check"
    assert [operation.completions for operation in (first, second, third)] == [1, 1, 1]
    assert second.attempts == 2, "not tried again once completed"
    assert_empty(purgatory, timer)


def test_checking_the_same_key_from_on_complete(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    nested: list[int] = []
    operations = [Operation(then=lambda: nested.append(purgatory.check_and_complete("a"))) for _ in range(5)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    for operation in operations:
        operation.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert sorted(nested) == [0, 1, 1, 1, 1]
    assert [operation.completions for operation in operations] == [1] * 5
    assert_empty(purgatory, timer)


def test_an_operation_watched_from_on_complete_is_not_met_by_the_same_check(
    purgatory: DelayedOperationPurgatory[Operation],
) -> None:
    late = Operation()
    first = Operation(then=lambda: purgatory.try_complete_else_watch(late, ["a"]))
    purgatory.try_complete_else_watch(first, ["a"])
    first.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert late.attempts == 2, "by try_complete_else_watch alone"
    assert (purgatory.watched, purgatory.num_keys) == (1, 1)
    late.completable = True
    assert purgatory.check_and_complete("a") == 1


def test_an_operation_completed_by_its_own_first_attempt_is_not_watched(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    class CompletedOnTheWay(Operation):
        def try_complete(self) -> bool:
            self.force_complete()
            return False  # completed, but not by this call's own verdict

    operation = CompletedOnTheWay()
    assert purgatory.try_complete_else_watch(operation, ["a"]) is False
    assert operation.completions == 1
    assert_empty(purgatory, timer)


def test_an_operation_completed_by_its_second_attempt_is_not_timed(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    class SecondTime(Operation):
        def try_complete(self) -> bool:
            self.completable = self.attempts == 1
            return super().try_complete()

    assert purgatory.try_complete_else_watch(SecondTime(), ["a"]) is True
    assert_empty(purgatory, timer)

    class SecondTimeOnTheWay(Operation):
        def try_complete(self) -> bool:
            self.attempts += 1
            if self.attempts == 2:
                self.force_complete()
            return False

    assert purgatory.try_complete_else_watch(SecondTimeOnTheWay(), ["a"]) is False
    assert_empty(purgatory, timer)


@pytest.mark.parametrize("failing_attempt", [1, 2])
def test_an_attempt_that_raises_goes_to_the_caller_and_leaves_nothing(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer, failing_attempt: int
) -> None:
    class Broken(Operation):
        def try_complete(self) -> bool:
            self.attempts += 1
            if self.attempts == failing_attempt:
                raise RuntimeError("a bug")
            return False

    with pytest.raises(RuntimeError, match="a bug"):
        purgatory.try_complete_else_watch(Broken(), ["a", "b"])
    assert_empty(purgatory, timer)


def test_completing_that_raises_in_the_second_attempt_goes_to_the_caller_once(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    class Broken(Operation):
        def try_complete(self) -> bool:
            self.attempts += 1
            return self.attempts == 2 and self.force_complete()

        def on_complete(self) -> None:
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        purgatory.try_complete_else_watch(Broken(), ["a"])
    assert_empty(purgatory, timer)


def test_a_bug_of_one_operation_is_reported_and_the_others_get_their_turn(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    errors: list[tuple[object, Exception]] = []
    timer.on_error = lambda task, error: errors.append((task, error))
    broken, sound = Operation(then=lambda: 1 // 0), Operation()
    for operation in (broken, sound):
        purgatory.try_complete_else_watch(operation, ["a"])
    broken.completable = sound.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert [(task, type(error)) for task, error in errors] == [(broken, ZeroDivisionError)]
    assert sound.completions == 1
    assert_empty(purgatory, timer)


def test_without_on_error_a_check_is_finished_and_then_raises(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    broken, sound = Operation(then=lambda: 1 // 0), Operation()
    for operation in (broken, sound):
        purgatory.try_complete_else_watch(operation, ["a"])
    broken.completable = sound.completable = True
    with pytest.raises(ExceptionGroup) as raised:
        purgatory.check_and_complete("a")
    assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError]
    assert sound.completions == 1
    assert_empty(purgatory, timer)


def test_a_bug_met_by_a_check_within_a_time_out_is_raised_by_advance(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer, clock: ManualClock
) -> None:
    broken, sound = Operation(then=lambda: 1 // 0), Operation()
    for operation in (broken, sound):
        purgatory.try_complete_else_watch(operation, ["a"])
    broken.completable = sound.completable = True
    checked: list[int] = []
    timer.schedule(5, lambda: checked.append(purgatory.check_and_complete("a")))
    clock.advance(5)
    with pytest.raises(ExceptionGroup):
        timer.advance()
    assert checked == [1]
    assert_empty(purgatory, timer)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("watch"), st.integers(0, 40), st.sets(st.integers(0, 4), min_size=1)),
            st.tuples(st.just("check"), st.integers(0, 4), st.integers(0, 2)),
            st.tuples(st.just("pass"), st.integers(0, 15), st.just(0)),
        ),
        max_size=60,
    )
)
def test_every_operation_completes_once_and_nothing_is_left(
    steps: list[tuple[str, int, set[int] | int]],
) -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    purgatory: DelayedOperationPurgatory[Operation] = DelayedOperationPurgatory("test", timer)
    waiting: dict[Operation, set[int]] = {}
    watched: list[Operation] = []
    for step, number, argument in steps:
        if step == "watch":
            assert isinstance(argument, set)
            operation = Operation(delay_ms=number)
            watched.append(operation)
            waiting[operation] = set(argument)
            purgatory.try_complete_else_watch(operation, argument)
        elif step == "check":
            for index, operation in enumerate(waiting):
                operation.completable = index % 3 == argument
            expected = sum(number in keys and operation.completable for operation, keys in waiting.items())
            assert purgatory.check_and_complete(number) == expected
        else:
            clock.advance(number)
            timer.advance()
        waiting = {operation: keys for operation, keys in waiting.items() if keys and not operation.is_completed}
        assert purgatory.num_delayed == len(waiting)
        assert purgatory.watched == sum(len(keys) for keys in waiting.values())
        assert purgatory.num_keys == len(set().union(*waiting.values()))
    clock.advance(100)
    timer.advance()
    assert timer.size == 0
    for operation in watched:
        assert operation.completions == 1
    for operation in waiting:
        assert operation.is_completed


def test_try_complete_for_gets_the_key_that_changed(
    purgatory: DelayedOperationPurgatory[Operation],
) -> None:
    told: list[object] = []

    class Curious(Operation):
        def try_complete_for(self, key: Hashable) -> bool:
            told.append(key)
            return super().try_complete_for(key)

    operation = Curious()
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    purgatory.check_and_complete("b")
    operation.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert (told, operation.attempts, operation.completions) == (["b", "a"], 4, 1)


def test_an_operation_that_waits_may_wait_under_one_more_key(
    purgatory: DelayedOperationPurgatory[Operation], timer: SystemTimer
) -> None:
    operation = Operation()
    purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.watch_also(operation, "b")
    assert purgatory.watched == 2
    operation.completable = True
    assert purgatory.check_and_complete("b") == 1
    assert_empty(purgatory, timer)
