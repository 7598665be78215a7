"""The names of benchmarks, and how they are chosen."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.benchmarks.catalog import BESIDE_APACHE, GROUPS, MODULES, PARTS, chosen_workloads, is_known, workloads
from tests.support.processes.apache.jvm import REPOSITORY


def test_every_workload_is_named_once_and_described() -> None:
    found = workloads()
    assert [name for name, times in Counter(each.name for each in found).items() if times > 1] == []
    assert [each.name for each in found if not re.fullmatch(r"[a-z_]+(/[\w.-]+)?", each.name)] == []
    assert [each.name for each in found if len(each.description) < 20 or each.description.endswith(".")] == []


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_workloads_and_their_names_begin_with_its_own(group: str) -> None:
    found = workloads([group])
    assert {each.group for each in found} == {group}
    assert any(each.main for each in found)


def test_a_group_has_a_name_of_its_own() -> None:
    assert set(GROUPS) & {*BESIDE_APACHE, *PARTS} == set()


def test_a_group_stands_for_its_main_workloads() -> None:
    main, full = (chosen_workloads(["produce"], full=full) for full in (False, True))
    assert 0 < len(main) < len(full)
    assert all(each.main for each in main)


def test_a_workload_is_chosen_by_its_name_or_a_pattern_also_if_it_is_not_a_main_one() -> None:
    hidden = next(each for each in workloads(["produce"]) if not each.main)
    assert [each.name for each in chosen_workloads([hidden.name], full=False)] == [hidden.name]
    assert {each.group for each in chosen_workloads(["consume/*"], full=False)} == {"consume"}


def test_unknown_names() -> None:
    assert all(is_known(name) for name in ("produce", "consume/cold", "consume/*", "idle_partitions", "timer"))
    assert not is_known("nothing")


def test_every_module_of_workloads_is_in_the_catalog() -> None:
    folder = REPOSITORY / "tests" / "benchmarks" / "workloads"
    found = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")}
    assert found == set(MODULES)
