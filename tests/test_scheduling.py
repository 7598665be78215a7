"""The order in which the processes of `make test` get their modules."""

from __future__ import annotations

import re

import pytest

from tests.scheduling import FAST, LONGEST, MOST_PROCESSES, OPTIONS, processes, turn
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


@pytest.mark.parametrize(("processors", "whole", "fast"), [(1, 2, 1), (2, 4, 2), (16, MOST_PROCESSES, 16)])
def test_most_of_the_suite_waits_and_the_fast_tests_compute(processors: int, whole: int, fast: int) -> None:
    assert processes(processors, for_fast_tests=False) == whole
    assert processes(processors, for_fast_tests=True) == fast
