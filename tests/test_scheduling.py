"""The order in which the processes of `make test` get their modules."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scheduling import FAST, LONGEST, MOST_PROCESSES, OPTIONS, FromBothEnds, processes, turn
from tests.support.processes.apache.jvm import REPOSITORY


def test_the_longest_modules_are_there() -> None:
    assert [module for module in LONGEST if not (REPOSITORY / module).is_file()] == []


def test_the_fast_tests_are_those_of_make_test_unit() -> None:
    words = command_of("test-unit").split()
    assert [word.removesuffix("*.py") for word in words if word.startswith("tests/")] == list(FAST)


def test_the_soak_runs_what_make_test_runs() -> None:
    assert command_of("test").endswith(f' {" ".join(OPTIONS)} -m "not soak and not kerberos and not images" tests')


def command_of(target: str) -> str:
    """The command of a target, with the variables in it replaced."""
    makefile = (REPOSITORY / "Makefile").read_text()
    command = makefile.partition(f"\n{target}:")[2].partition("\n\n")[0].splitlines()[-1]
    variables = dict(re.findall(r"^(\w+) *= (.*)$", makefile, re.MULTILINE))
    return re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), command)


def test_the_longest_come_first_and_the_fast_last() -> None:
    modules = ["tests/unit/timer/test_task.py", "tests/crash/test_torn_files.py", LONGEST[1], "tests/test_ports.py"]
    assert sorted([*modules, LONGEST[0]], key=turn) == [LONGEST[0], LONGEST[1], modules[1], modules[0], modules[3]]


@pytest.mark.parametrize(("processors", "whole", "fast"), [(1, 3, 1), (2, 5, 2), (16, MOST_PROCESSES + 2, 16)])
def test_most_of_the_suite_waits_and_the_fast_tests_compute(processors: int, whole: int, fast: int) -> None:
    assert processes(processors, for_fast_tests=False) == whole
    assert processes(processors, for_fast_tests=True) == fast


class Process:
    """What the queue knows of a process that runs tests."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.shutting_down = False
        self.given: list[list[int]] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.given.append(places)

    def shutdown(self) -> None:
        self.shutting_down = True


def test_the_last_process_begins_at_the_back_of_the_queue() -> None:
    option = SimpleNamespace(loadscopereorder=False, debug=False)
    config: Any = SimpleNamespace(getvalue=lambda name: {"tx": ["3*popen"]}[name], option=option)
    queue = FromBothEnds(config)
    nodes: list[Any] = [Process(number) for number in range(3)]
    collected = [f"tests/test_{module}.py::test_{number}" for module in "abcdefg" for number in range(3)]
    for node in nodes:
        queue.add_node(node)
        queue.add_node_collection(node, collected)
    queue.schedule()
    assert [node.given for node in nodes] == [[[0, 1, 2]], [[3, 4, 5]], [[18, 19, 20]]]

    for node, module in ((2, "g"), (0, "a"), (1, "b"), (2, "f")):
        for number in range(3):
            queue.mark_test_complete(nodes[node], collected.index(f"tests/test_{module}.py::test_{number}"))
    assert [node.given[1:] for node in nodes] == [[[6, 7, 8]], [[9, 10, 11]], [[15, 16, 17], [12, 13, 14]]]
    assert not queue.tests_finished
    for node, module in ((2, "e"), (0, "c"), (1, "d")):
        for number in range(3):
            queue.mark_test_complete(nodes[node], collected.index(f"tests/test_{module}.py::test_{number}"))
    assert queue.tests_finished
    assert all(node.shutting_down for node in nodes)
