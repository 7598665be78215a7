"""Test suites of other projects against Odradek, from their published sources: `make strangers`.

`ARGS` names suites, all of them without any. `ARGS="--apache NAME"` runs one against Apache Kafka 3.9: does the test
pass there? `ARGS="NAME -- -k EXPRESSION"` gives arguments to pytest. Sources come from the package index where the
package contains the tests. The others are read from a checkout of the tag in `.cache/strangers/sources/NAME-VERSION`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tests.support.strangers.runs import Outcome, run_suite
from tests.support.strangers.suites import SUITES


def main(given: Sequence[str]) -> int:
    own, _, more = "\0".join(given).partition("\0--\0")
    parser = argparse.ArgumentParser(prog="make strangers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--apache", action="store_true", help="with Apache's own broker: does the test pass there?")
    arguments = parser.parse_args([each for each in own.split("\0") if each])
    unknown = set(arguments.names) - set(SUITES)
    if unknown:
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    target = "apache" if arguments.apache else "odradek"
    failed = 0
    for name in arguments.names or SUITES:
        outcome = run_suite(SUITES[name], target, [each for each in more.split("\0") if each])
        report(outcome)
        failed += len(outcome.failed)
    return 1 if failed else 0


def report(outcome: Outcome) -> None:
    """One line for the suite, and one for each test that did not pass."""
    counts = {what: len(tests) for what, tests in outcome.by_kind.items()}
    print(
        f"{outcome.suite.source}: {counts['passed']} passed, {counts['failed']} failed, "
        f"{counts['excused']} excused, {counts['skipped']} skipped by the suite, {outcome.duration_s:.0f} s"
    )
    for what in ("failed", "excused"):
        for test, why in outcome.by_kind[what].items():
            print(f"  {what.upper()} {test}: {why}")
    for why, count in Counter(outcome.by_kind["skipped"].values()).items():
        print(f"  SKIPPED {count}: {why}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
