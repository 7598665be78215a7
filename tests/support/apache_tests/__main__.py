"""Apache Kafka's own integration tests against Odradek: `make apache-tests`.

`ARGS` names the tests to run: suites (streams, core, tools), packages, classes by full or simple name, or CLASS#REGEX
for some tests of a class; all of them without any. `ARGS=--selection` is what `make test` runs, `ARGS=--list` prints
the names. Each class has a JVM of its own; the output of failed classes is left in .cache/apache-tests/runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.support.apache_tests.listing import Listing, TestClass, read_listing
from tests.support.apache_tests.runs import CACHE, Outcome, run_class


def main() -> int:
    parser = argparse.ArgumentParser(prog="make apache-tests", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a suite, a package, a class, or CLASS#REGEX")
    parser.add_argument("--selection", action="store_true", help="what is part of make test")
    parser.add_argument("--list", action="store_true", help="print the classes that run, and how many tests each has")
    parser.add_argument("--apache", action="store_true", help="with Apache's own broker: does the test pass there?")
    parser.add_argument("--jobs", type=int, default=1, help="how many JVMs run at a time (1)")
    arguments = parser.parse_args()
    chosen = choose(read_listing(), arguments.names, selection=arguments.selection, parser=parser)
    if arguments.list:
        for entry, _ in chosen:
            print(f"{entry.tests:4}  {entry.name}")
        print(f"{sum(entry.tests for entry, _ in chosen):4}  in {len(chosen)} classes")
        return 0
    return run(chosen, arguments.jobs, apache=arguments.apache)


def choose(
    listing: Listing, names: Sequence[str], *, selection: bool, parser: argparse.ArgumentParser
) -> list[tuple[TestClass, str]]:
    """The classes to run, each with the regular expression of its tests ("" for all)."""
    if not names:
        return [(entry, "") for entry in listing.classes.values() if entry.selected or not selection]
    chosen = []
    for name in names:
        class_name, _, only = name.partition("#")
        found = listing.named(class_name)
        if not found:
            reason = listing.excused.get(class_name, "the list has none of that name that runs")
            parser.error(f"{class_name}: {reason}")
        chosen += [(entry, only) for entry in found]
    return chosen


def run(chosen: Sequence[tuple[TestClass, str]], jobs: int, *, apache: bool) -> int:
    """Run them and print the result of each; returns the exit status."""
    passed = failed = missing = 0
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(lambda choice: run_class(choice[0], CACHE / "runs", choice[1], apache=apache), chosen)
        for (entry, only), outcome in zip(chosen, outcomes, strict=True):
            lacking = 0 if only else max(entry.tests - outcome.ran, 0)
            passed, failed, missing = passed + len(outcome.passed), failed + len(outcome.failed), missing + lacking
            report(entry, outcome, lacking)
    print(f"{passed} passed, {failed} failed, {missing} of those listed did not run")
    return 1 if failed or missing else 0


def report(entry: TestClass, outcome: Outcome, lacking: int) -> None:
    print(f"{len(outcome.passed):4} of {outcome.ran:4}  {entry.name}  {outcome.duration_s:.0f} s", flush=True)
    for test, message in outcome.failed.items():
        print(f"             FAILED {test}: {message}")
    if lacking:
        print(f"             MISSING {lacking}: {entry.tests} are listed, {outcome.ran} ran")


if __name__ == "__main__":
    sys.exit(main())
