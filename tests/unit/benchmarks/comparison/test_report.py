"""The report: what is behind Apache comes first, and a saved report is read back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.benchmarks.comparison.machine import Machine
from tests.benchmarks.comparison.report import Run, behind_apache, digits, figure, markdown, ratio, table
from tests.benchmarks.comparison.runner import Result
from tests.benchmarks.comparison.statistics import Comparison

MACHINE = Machine("a processor", 2, 24.0, "6.1", "3.11.7", "openjdk 17", "Apache Kafka 3.9.1")
LABELS = ("Odradek", "Apache")


def result(name: str, *comparisons: Comparison, labels: tuple[str, ...] = LABELS) -> Result:
    return Result(name, f"What {name} is", "one node", labels, comparisons)


SLOWER = Comparison("throughput", "MB/s", [50, 50], [100, 200])
DEARER = Comparison("processor time", "CPU s/GB", [3, 3], [2, 2])
CHEAPER = Comparison("memory", "MB", [38, 38], [230, 230])

RUN = Run(
    command="make bench",
    started="2026-01-02 03:04",
    machine=MACHINE,
    load_before=0.5,
    load_after=1.5,
    duration_s=61.2,
    pairs=2,
    scale=1,
    results=[result("a/one", DEARER, CHEAPER), replace(result("a/two", SLOWER), series=("partitions", 10.0))],
)


def test_what_is_behind_is_sorted_by_how_far() -> None:
    assert [(where.name, what) for where, what in behind_apache(RUN.results)] == [("a/two", SLOWER), ("a/one", DEARER)]


def test_only_comparisons_with_apache_can_be_behind_it() -> None:
    assert behind_apache([result("two brokers", SLOWER, labels=("two brokers", "one broker"))]) == []


def test_the_report_begins_with_what_is_behind() -> None:
    lines = markdown([RUN], ["ratios-a.png"]).splitlines()
    first = lines.index("## Behind Apache")
    assert first < lines.index("## a/one")
    assert lines[first + 4] == "| `a/two` | throughput, MB/s | 50.0 | 150 | 0.38 (0.25–0.50) | 2 of 2 pairs |"
    assert lines[first + 5].startswith("| `a/one` | processor time, CPU s/GB | 3.00 | 2.00 | 1.50")
    assert "| memory, MB | 38.0 (38.0–38.0) | 230 (230–230) | 0.17 (0.17–0.17) |" in lines
    assert "| `make bench` | 2026-01-02 03:04 | 2 | 1 | 61 | 0.5; 1.5 |" in lines
    assert any("a processor, 2 cores, 24.0 GB; Linux 6.1; Python 3.11.7; openjdk 17" in line for line in lines)
    assert "![ratios-a.png](ratios-a.png)" in lines


def test_nothing_behind_is_said() -> None:
    assert "No figure." in markdown([replace(RUN, results=[result("a", CHEAPER)])])


def test_a_machine_that_several_runs_share_is_named_once() -> None:
    assert markdown([RUN, RUN]).count("a processor") == 1


def test_a_workload_that_failed_is_named_with_its_error() -> None:
    failed = replace(result("a/one"), error="AssertionError: not everything was acknowledged")
    assert "**No figures: AssertionError: not everything was acknowledged**" in markdown(
        [replace(RUN, results=[failed])]
    )
    assert "no figures: AssertionError" in table(failed)


def test_one_side_alone_is_shown_without_ratios() -> None:
    alone = result("a", Comparison("memory", "MB", [38], []), labels=("Odradek",))
    assert "| memory, MB | 38.0 |  |" in markdown([replace(RUN, results=[alone])])
    assert "38.0" in table(alone)


def test_a_saved_report_is_read_back() -> None:
    saved = json.loads(json.dumps(RUN.as_json()))
    assert saved["results"][1]["comparisons"][0]["ratios"] == [0.5, 0.25]
    assert saved["results"][1]["comparisons"][0]["behind"] == 1 / 0.375
    again = Run.from_json(saved)
    assert markdown([again]) == markdown([RUN])
    assert again.results[1].series == ("partitions", 10.0)


def test_figures_have_three_digits() -> None:
    assert [digits(value) for value in (1234.5, 123.4, 12.34, 1.234, 0.01234)] == [
        "1,234",
        "123",
        "12.3",
        "1.23",
        "0.012",
    ]
    assert figure([1.0]) == "1.00"
    assert figure([]) == ""
    assert ratio(Comparison("figure", "s", [1], [])) == ""
