"""The order of turns, what setups are shared, and a workload that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.benchmarks.comparison.runner import Runner
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Setup, Side, Workload
from tests.benchmarks.contenders import Contenders

TURN = {("figure", "s"): 1.0}


class Trace:
    """What a run does, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def setup(self, name: str = "setup") -> Setup:
        @contextmanager
        def start(contenders: Contenders, label: str) -> Iterator[Side]:
            self.events.append(f"start {label}")
            yield Side(label, contenders)
            self.events.append(f"stop {label}")

        return Setup(name, start, ("A", "B"))

    def drive(self, name: str) -> Callable[[Side], Figures]:
        def drive(side: Side) -> Figures:
            self.events.append(f"{name} {side.label}")
            return TURN

        return drive


@pytest.fixture
def trace() -> Trace:
    return Trace()


def workload(name: str, setup: Setup, drive: Callable[[Side], Figures], warm_up: int = 0) -> Workload:
    return Workload(name=name, description=name, setup=setup, drive=drive, warm_up=warm_up)


def test_the_sides_take_turns_after_the_warm_up(trace: Trace, tmp_path: Path) -> None:
    one = workload("one", trace.setup(), trace.drive("one"), warm_up=1)
    [result] = Runner(Contenders(tmp_path), pairs=2).run([one])
    assert trace.events == ["start A", "start B", *["one A", "one B"] * 3, "stop B", "stop A"]
    [comparison] = result.comparisons
    assert (comparison.ours, comparison.theirs) == ([1.0, 1.0], [1.0, 1.0])


def test_workloads_with_the_same_setup_share_the_brokers(trace: Trace, tmp_path: Path) -> None:
    shared, other = trace.setup(), trace.setup("other")
    chosen = [workload(name, setup, trace.drive(name)) for name, setup in (("1", shared), ("2", shared), ("3", other))]
    results = Runner(Contenders(tmp_path), pairs=1).run(chosen)
    starts = ["start A", "start B"]
    stops = ["stop B", "stop A"]
    assert trace.events == [*starts, "1 A", "1 B", "2 A", "2 B", *stops, *starts, "3 A", "3 B", *stops]
    assert [result.setup for result in results] == ["setup", "setup", "other"]


def test_one_side_is_measured_alone(trace: Trace, tmp_path: Path) -> None:
    [result] = Runner(Contenders(tmp_path), pairs=2, labels=["A"]).run([workload("1", trace.setup(), trace.drive("1"))])
    assert trace.events == ["start A", "1 A", "1 A", "stop A"]
    assert result.labels == ["A"]
    assert result.comparisons[0].theirs == []


def test_a_workload_that_fails_does_not_end_the_run(trace: Trace, tmp_path: Path) -> None:
    def fail(side: Side) -> Figures:
        raise AssertionError("not everything was acknowledged")

    setup = trace.setup()
    shown: list[str] = []
    runner = Runner(Contenders(tmp_path), pairs=1, show=lambda result: shown.append(result.name))
    results = runner.run([workload("bad", setup, fail), workload("good", setup, trace.drive("good"))])
    assert [result.error for result in results] == ["AssertionError: not everything was acknowledged", ""]
    assert shown == ["bad", "good"]
    starts, stops = ["start A", "start B"], ["stop B", "stop A"]
    assert trace.events == [*starts, *stops, *starts, "good A", "good B", *stops]


def test_an_amount_of_work_is_scaled(tmp_path: Path) -> None:
    side = Side("A", Contenders(tmp_path, scale=0.1))
    assert side.amount(1_000) == 100
    assert side.amount(1_000, at_least=200) == 200
    assert side.new_topic("topic") != side.new_topic("topic")
