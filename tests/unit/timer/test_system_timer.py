"""When tasks run: never early, at most a tick late, in order, whatever they do while they run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from odradek.timer.task import TimerTask

INT64_MAX = (1 << 63) - 1


class Recorder:
    """Makes tasks that note when they ran."""

    def __init__(self, clock: ManualClock, timer: SystemTimer) -> None:
        self.clock = clock
        self.timer = timer
        self.ran: list[tuple[str, int]] = []

    def add(self, name: str, delay_ms: int, then: Callable[[], object] = lambda: None) -> TimerTask:
        def run() -> None:
            self.ran.append((name, self.clock.monotonic_ms()))
            then()

        return self.timer.schedule(delay_ms, run)

    def advance(self, ms: int) -> list[str]:
        """Let time pass in one step, advance the timer once, and name what ran."""
        self.clock.advance(ms)
        before = len(self.ran)
        count = self.timer.advance()
        names = [name for name, _ in self.ran[before:]]
        assert count == len(names)
        return names


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timer(clock: ManualClock) -> SystemTimer:
    return SystemTimer(clock)


@pytest.fixture
def recorder(clock: ManualClock, timer: SystemTimer) -> Recorder:
    return Recorder(clock, timer)


def positions(timer: SystemTimer) -> list[tuple[int, int, int]]:
    """(level, place, tasks) of every bucket in use."""
    return [
        (state.level, place, len(tasks)) for state in timer.inspect() for place, tasks in sorted(state.buckets.items())
    ]


def run_to_the_end(timer: SystemTimer, clock: ManualClock) -> None:
    """What the ticker does: sleep until the next deadline, advance."""
    while (deadline_ms := timer.next_deadline_ms()) is not None:
        clock.advance(max(0, deadline_ms - clock.monotonic_ms()))
        timer.advance()


@pytest.mark.parametrize("delay_ms", [1, 2, 19, 20, 21, 350, 399, 400, 450, 7_999, 8_000, 30_000, 604_800_000])
@pytest.mark.parametrize("start_ms", [0, 17, 123_456_789])
def test_a_task_runs_at_its_millisecond(delay_ms: int, start_ms: int) -> None:
    clock = ManualClock(start_ms)
    timer = SystemTimer(clock)
    recorder = Recorder(clock, timer)
    recorder.add("a", delay_ms)
    run_to_the_end(timer, clock)
    assert recorder.ran == [("a", start_ms + delay_ms)]
    assert timer.size == 0


def test_a_task_does_not_run_a_millisecond_early(recorder: Recorder) -> None:
    recorder.add("a", 450)
    assert recorder.advance(449) == []
    assert recorder.advance(1) == ["a"]
    assert recorder.advance(1_000) == []


def test_inspect_shows_a_450_ms_task_on_its_way_down(timer: SystemTimer, recorder: Recorder) -> None:
    task = recorder.add("a", 450)
    seen = [positions(timer)]
    for step in (399, 1, 39, 1, 9):
        assert recorder.advance(step) == []
        seen.append(positions(timer))
    assert seen == [[(3, 1, 1)], [(3, 1, 1)], [(2, 2, 1)], [(2, 2, 1)], [(1, 10, 1)], [(1, 10, 1)]]
    finest, middle, coarsest = timer.inspect()
    assert (finest.tick_ms, middle.tick_ms, coarsest.tick_ms) == (1, 20, 400)
    assert (finest.current_time_ms, middle.current_time_ms, coarsest.current_time_ms) == (449, 440, 400)
    assert finest.buckets == {10: (task,)}
    assert recorder.advance(1) == ["a"]
    assert positions(timer) == []


def test_next_deadline_is_that_of_the_bucket_not_of_the_task(timer: SystemTimer, recorder: Recorder) -> None:
    assert timer.next_deadline_ms() is None
    recorder.add("a", 450)
    deadlines = []
    while (deadline_ms := timer.next_deadline_ms()) is not None:
        deadlines.append(deadline_ms)
        recorder.advance(deadline_ms - recorder.clock.monotonic_ms())
    assert deadlines == [400, 440, 450]


def test_one_large_step_runs_everything_in_order(recorder: Recorder) -> None:
    for delay_ms in (7_000, 3, 450, 350, 1, 86_400_000, 20):
        recorder.add(str(delay_ms), delay_ms)
    assert recorder.advance(100_000_000) == ["1", "3", "20", "350", "450", "7000", "86400000"]


def test_after_an_idle_time_a_short_delay_goes_to_the_finest_wheel(
    clock: ManualClock, timer: SystemTimer, recorder: Recorder
) -> None:
    recorder.add("session", 30_000)
    clock.advance(20_003)
    recorder.add("fetch", 5)
    assert positions(timer) == [(1, 20_008 % 20, 1), (4, 3, 1)]


def test_adding_while_a_bucket_is_overdue_loses_nothing(clock: ManualClock, recorder: Recorder) -> None:
    recorder.add("overdue", 450)
    clock.advance(1_000)
    recorder.add("later", 7)
    assert recorder.advance(0) == ["overdue"]
    assert recorder.advance(6) == []
    assert recorder.advance(1) == ["later"]


@pytest.mark.parametrize("delay_ms", [0, -1, -INT64_MAX])
def test_an_expired_task_runs_in_the_next_advance_not_in_add(
    timer: SystemTimer, recorder: Recorder, delay_ms: int
) -> None:
    recorder.add("now", delay_ms)
    assert recorder.ran == []
    assert timer.size == 1
    assert timer.next_deadline_ms() == 0
    assert recorder.advance(0) == ["now"]
    assert timer.next_deadline_ms() is None


def test_an_expired_task_that_has_not_run_can_be_cancelled(timer: SystemTimer, recorder: Recorder) -> None:
    recorder.add("now", 0).cancel()
    assert timer.next_deadline_ms() is None
    assert recorder.advance(1) == []


@pytest.mark.parametrize("delay_ms", [INT64_MAX, 2**100])
def test_the_largest_delays_are_accepted(timer: SystemTimer, recorder: Recorder, delay_ms: int) -> None:
    task = recorder.add("never", delay_ms)
    assert recorder.advance(10**12) == []
    deadline_ms = timer.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms <= delay_ms
    assert recorder.advance(delay_ms) == ["never"]
    assert not task.is_pending


def test_a_cancelled_task_does_not_run_and_leaves_no_deadline(timer: SystemTimer, recorder: Recorder) -> None:
    for delay_ms in (5, 450, 30_000):
        recorder.add("a", delay_ms).cancel()
    assert timer.size == 0
    assert timer.next_deadline_ms() is None
    assert recorder.advance(100_000) == []


def test_a_cancelled_task_can_be_added_again(timer: SystemTimer, recorder: Recorder) -> None:
    task = recorder.add("a", 5)
    task.cancel()
    recorder.advance(3)
    timer.add(task)
    assert recorder.advance(4) == []
    assert recorder.advance(1) == ["a"]


def test_adding_a_waiting_task_again_moves_it(timer: SystemTimer, recorder: Recorder) -> None:
    task = recorder.add("a", 10)
    recorder.advance(5)
    timer.add(task)
    assert timer.size == 1
    assert recorder.advance(5) == []
    assert recorder.advance(5) == ["a"]


def test_adding_a_waiting_task_to_another_timer_moves_it(clock: ManualClock, recorder: Recorder) -> None:
    task = recorder.add("a", 10)
    other = SystemTimer(clock)
    other.add(task)
    assert (recorder.timer.size, other.size) == (0, 1)
    assert recorder.advance(10) == []
    assert other.advance() == 1
    assert recorder.ran == [("a", 10)]


def test_a_task_may_add_itself_again_while_it_runs(timer: SystemTimer, clock: ManualClock) -> None:
    class Periodic(TimerTask):
        def __init__(self) -> None:
            super().__init__(10)
            self.ran_at: list[int] = []

        def run(self) -> None:
            self.ran_at.append(clock.monotonic_ms())
            if len(self.ran_at) < 3:
                timer.add(self)

    task = Periodic()
    timer.add(task)
    run_to_the_end(timer, clock)
    assert task.ran_at == [10, 20, 30]


def test_a_task_that_keeps_adding_itself_without_delay_runs_once_an_advance(
    clock: ManualClock, timer: SystemTimer
) -> None:
    class Restless(TimerTask):
        def run(self) -> None:
            timer.add(self)

    timer.add(Restless(0))
    assert [timer.advance() for _ in range(3)] == [1, 1, 1]
    assert timer.next_deadline_ms() == clock.monotonic_ms()


def test_a_task_may_cancel_its_neighbours_while_it_runs(timer: SystemTimer, recorder: Recorder) -> None:
    victims: list[TimerTask] = []
    recorder.add("first", 5, then=lambda: [victim.cancel() for victim in victims])
    victims.append(recorder.add("same bucket", 5))
    victims.append(recorder.add("next bucket", 6))
    victims.append(recorder.add("next wheel", 60))
    recorder.add("last", 5)
    assert recorder.advance(100) == ["first", "last"]
    assert timer.size == 0


def test_cancelling_the_running_task_is_without_effect(recorder: Recorder) -> None:
    tasks: list[TimerTask] = []
    tasks.append(recorder.add("a", 5, then=lambda: tasks[0].cancel()))
    recorder.add("b", 5)
    assert recorder.advance(5) == ["a", "b"]


def test_tasks_added_by_a_running_task_run_at_their_own_time(clock: ManualClock, recorder: Recorder) -> None:
    recorder.add("a", 5, then=lambda: (recorder.add("now", 0), recorder.add("soon", 1), recorder.add("late", 450)))
    recorder.add("b", 900)
    assert recorder.advance(1_000) == ["a", "b"]
    assert recorder.advance(0) == ["now"]
    assert recorder.advance(1) == ["soon"]
    assert recorder.advance(448) == []
    assert recorder.advance(1) == ["late"]


def test_a_task_that_advances_the_clock_does_not_let_others_run_early(clock: ManualClock, recorder: Recorder) -> None:
    recorder.add("slow", 5, then=lambda: clock.advance(100))
    recorder.add("b", 50)
    assert recorder.advance(5) == ["slow"]
    assert recorder.advance(0) == ["b"]
    assert recorder.ran == [("slow", 5), ("b", 105)]


def test_advance_is_not_reentrant(timer: SystemTimer, clock: ManualClock) -> None:
    errors: list[Exception] = []
    timer.on_error = lambda task, error: errors.append(error)
    timer.schedule(1, timer.advance)
    clock.advance(1)
    assert timer.advance() == 1
    assert [type(error) for error in errors] == [RuntimeError]


def test_a_task_that_raises_does_not_stop_the_others(timer: SystemTimer, recorder: Recorder) -> None:
    errors: list[tuple[TimerTask, Exception]] = []
    timer.on_error = lambda task, error: errors.append((task, error))
    recorder.add("a", 5)
    task = recorder.add("bad", 5, then=lambda: 1 // 0)
    recorder.add("b", 5)
    recorder.add("c", 6)
    assert recorder.advance(10) == ["a", "bad", "b", "c"]
    assert [(failed, type(error)) for failed, error in errors] == [(task, ZeroDivisionError)]


def test_without_on_error_a_round_is_finished_and_then_raises(recorder: Recorder) -> None:
    recorder.add("bad", 5, then=lambda: 1 // 0)
    recorder.add("worse", 6, then=lambda: [][0])
    recorder.add("b", 7)
    with pytest.raises(ExceptionGroup) as raised:
        recorder.advance(10)
    assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError, IndexError]
    assert [name for name, _ in recorder.ran] == ["bad", "worse", "b"]
    assert recorder.advance(1) == []


def test_a_base_exception_is_raised_at_once_and_the_other_tasks_keep_waiting(
    timer: SystemTimer, recorder: Recorder
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    recorder.add("a", 5, then=interrupt)
    recorder.add("b", 5)
    recorder.add("c", 450)
    with pytest.raises(KeyboardInterrupt):
        recorder.advance(1_000)
    assert timer.size == 2
    assert recorder.advance(0) == ["b", "c"]


def test_the_hook_is_called_when_the_next_deadline_comes_forward(timer: SystemTimer, recorder: Recorder) -> None:
    deadlines: list[int | None] = []
    timer.on_earlier_deadline = lambda: deadlines.append(timer.next_deadline_ms())
    recorder.add("first", 450)
    recorder.add("same bucket", 500)
    recorder.add("later", 900)
    recorder.add("earlier", 30)
    recorder.add("expired", 0)
    recorder.add("expired too", 0)
    assert deadlines == [400, 20, 0]


def test_the_hook_is_silent_during_advance(timer: SystemTimer, recorder: Recorder) -> None:
    recorder.add("a", 5, then=lambda: (recorder.add("b", 1), recorder.add("c", 0)))
    calls: list[int | None] = []
    timer.on_earlier_deadline = lambda: calls.append(timer.next_deadline_ms())
    recorder.advance(5)
    assert calls == []
    assert timer.next_deadline_ms() == 5


def test_a_budget_cuts_the_round_short_and_loses_nothing(
    clock: ManualClock, timer: SystemTimer, recorder: Recorder
) -> None:
    for name in "abcdef":
        recorder.add(name, 0 if name < "c" else 30, then=lambda: clock.advance(4))
    clock.advance(100)
    rounds = []
    while (deadline_ms := timer.next_deadline_ms()) is not None:
        assert deadline_ms <= clock.monotonic_ms()
        before = len(recorder.ran)
        assert timer.advance(budget_ms=8) == len(recorder.ran) - before
        rounds.append("".join(name for name, _ in recorder.ran[before:]))
    assert rounds == ["ab", "cd", "ef"]


def test_a_round_cut_short_can_be_added_to_and_cancelled(
    clock: ManualClock, timer: SystemTimer, recorder: Recorder
) -> None:
    tasks = [recorder.add(name, 450, then=lambda: clock.advance(10)) for name in "abcd"]
    clock.advance(1_000)
    timer.advance(budget_ms=5)
    tasks[2].cancel()
    recorder.add("soon", 1)
    recorder.add("now", 0)
    timer.advance()
    timer.advance()
    assert [name for name, _ in recorder.ran] == ["a", "now", "b", "d", "soon"]


def test_demoting_many_tasks_keeps_to_the_budget() -> None:
    class TickingClock(ManualClock):
        """Time passes by being looked at."""

        def monotonic_ms(self) -> int:
            self.advance(1)
            return super().monotonic_ms()

    clock = TickingClock()
    timer = SystemTimer(clock)
    delay_ms = 1_000_000
    for _ in range(5_000):
        timer.schedule(delay_ms, lambda: None)
    clock.advance(delay_ms - 20_000)
    rounds = 0
    ran = 0
    while ran < 5_000:
        ran += timer.advance(budget_ms=1)
        rounds += 1
    assert rounds > 5_000, "no round could do more than one step"
    assert timer.size == 0


@pytest.mark.parametrize(("tick_ms", "wheel_size"), [(5, 20), (7, 3), (1, 2), (100, 64)])
def test_other_ticks_and_sizes_are_never_early_and_at_most_one_tick_late(tick_ms: int, wheel_size: int) -> None:
    clock = ManualClock(33)
    timer = SystemTimer(clock, tick_ms, wheel_size)
    recorder = Recorder(clock, timer)
    delays = [1, 4, 5, 6, 99, 100, 101, 450, 12_345]
    for delay_ms in delays:
        recorder.add(str(delay_ms), delay_ms)
    run_to_the_end(timer, clock)
    assert len(recorder.ran) == len(delays)
    for name, ran_at in recorder.ran:
        assert 0 <= ran_at - 33 - int(name) < tick_ms


@pytest.mark.parametrize(("tick_ms", "wheel_size"), [(0, 20), (1, 1)])
def test_a_wheel_that_cannot_turn_is_refused(tick_ms: int, wheel_size: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        SystemTimer(ManualClock(), tick_ms, wheel_size)


class TimerAgainstSortedList(RuleBasedStateMachine):
    """The wheel beside the dumbest thing that could work: a list, sorted by expiration."""

    tasks: Bundle[TimerTask] = Bundle("tasks")
    delays = st.one_of(st.integers(-2, 45), st.integers(0, 9_000), st.integers(0, 10**7), st.just(INT64_MAX))

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(12_345)
        self.timer = SystemTimer(self.clock)
        self.expirations: dict[TimerTask, int] = {}
        self.ran: list[TimerTask] = []
        self.earlier: list[int] = []
        self.known_deadline_ms: int | None = None
        self.timer.on_earlier_deadline = self.rearm

    def rearm(self) -> None:
        self.known_deadline_ms = self.timer.next_deadline_ms()

    @rule(target=tasks, delay_ms=delays)
    def add(self, delay_ms: int) -> TimerTask:
        task = self.timer.schedule(delay_ms, lambda: self.ran.append(task))
        self.expirations[task] = self.clock.monotonic_ms() + max(0, delay_ms)
        return task

    @rule(target=tasks, delay_ms=delays, count=st.integers(2, 5))
    def add_several(self, delay_ms: int, count: int) -> object:
        return multiple(*[self.add(delay_ms) for _ in range(count)])

    @rule(task=consumes(tasks))
    def cancel(self, task: TimerTask) -> None:
        task.cancel()
        self.expirations.pop(task, None)

    @rule(task=tasks)
    def add_again(self, task: TimerTask) -> None:
        self.timer.add(task)
        self.expirations[task] = self.clock.monotonic_ms() + max(0, task.delay_ms)

    @rule(step_ms=st.one_of(st.integers(0, 3), st.integers(0, 500), st.integers(0, 10**7)))
    def time_passes(self, step_ms: int) -> None:
        self.clock.advance(step_ms)

    @rule()
    def advance(self) -> None:
        now_ms = self.clock.monotonic_ms()
        due = sorted((expiration, id(task)) for task, expiration in self.expirations.items() if expiration <= now_ms)
        self.ran.clear()
        assert self.timer.advance() == len(due)
        assert sorted((self.expirations[task], id(task)) for task in self.ran) == due
        waited = [self.expirations[task] for task in self.ran if task.delay_ms > 0]
        assert waited == sorted(waited)
        for task in self.ran:
            del self.expirations[task]
        self.known_deadline_ms = self.timer.next_deadline_ms()

    @rule()
    def advance_to_the_next_deadline(self) -> None:
        deadline_ms = self.timer.next_deadline_ms()
        if deadline_ms is not None:
            self.clock.advance(max(0, deadline_ms - self.clock.monotonic_ms()))
            self.advance()

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        assert self.timer.size == len(self.expirations)
        for task in self.expirations:
            assert task.is_pending

    @invariant()
    def deadline_is_not_after_the_first_expiration(self) -> None:
        deadline_ms = self.timer.next_deadline_ms()
        if not self.expirations:
            assert deadline_ms is None
            return
        now_ms = self.clock.monotonic_ms()  # of overdue deadlines any will do
        assert deadline_ms is not None
        assert deadline_ms <= max(now_ms, min(self.expirations.values()))
        assert self.known_deadline_ms is not None, "the hook was not called"
        assert self.known_deadline_ms <= max(now_ms, deadline_ms), "the ticker would sleep too long"


TestTimerAgainstSortedList = TimerAgainstSortedList.TestCase
TestTimerAgainstSortedList.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
