"""Counts of calls, system calls and memory for each request: `make bench-counts`.

    python -m tests.benchmarks.counts [NAME] [--calls] [--record]

`tests/test_request_counts.py` holds the recorded counts: a change that makes one grow records it, and says why.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.benchmarks.counts.recorded import record, recorded
from tests.benchmarks.counts.sequences import RUNS, SEQUENCES, broker_with_topic, count

SHOWN = 60


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.counts", description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="only sequences with this in their name")
    parser.add_argument("--calls", action="store_true", help="print the functions that are called most")
    parser.add_argument("--record", action="store_true", help="write the counts into the file of recorded counts")
    arguments = parser.parse_args()
    known, found = recorded(), {}
    print(f"{'':48}{'Python':>9}{'C':>9}{'system':>8}{'peak KB':>9}   before")
    for name, make in SEQUENCES.items():
        if arguments.name not in name:
            continue
        with tempfile.TemporaryDirectory() as directory, broker_with_topic(Path(directory)) as broker:
            counts, calls = count(make, broker)
        found[name] = counts
        before = known.get(name)
        print(
            f"{name:48}{counts.python_calls:9.2f}{counts.native_calls:9.2f}{counts.system_calls:8.2f}"
            f"{counts.peak_bytes / 1024:9.2f}   "
            + ("" if before is None else f"{before.python_calls} {before.native_calls} {before.system_calls}")
        )
        if arguments.calls:
            for function, times in (calls.python + calls.native).most_common(SHOWN):
                print(f"    {times / RUNS:7.2f} {function}")
    if arguments.record:
        every = known | found
        record({name: every[name] for name in SEQUENCES if name in every})


if __name__ == "__main__":
    main()
