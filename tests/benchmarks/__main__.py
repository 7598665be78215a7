"""All benchmarks, or those named: `make bench`, `make bench ARGS="start_up produce"`; `ARGS=--list` prints the names.

Three kinds. Workloads give Odradek and Apache Kafka 3.9 the same load in turn, A B A B ..., and make a report of the
pairs with medians, spread and ratios: tables, JSON and plots in `build/bench`. Those of `beside_apache/` print tables
of their own. `parts/bench_*.py` measure one part of Odradek each, in a process of their own. No figure is held against
a limit, because figures differ between machines and days.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.catalog import BESIDE_APACHE, GROUPS, PARTS, chosen_workloads, is_known, workloads
from tests.benchmarks.comparison.machine import this_machine
from tests.benchmarks.comparison.report import Run, table
from tests.benchmarks.comparison.runner import Result, Runner
from tests.benchmarks.comparison.saved import saved, write_report
from tests.benchmarks.contenders import contenders
from tests.support.processes.apache.jvm import REPOSITORY

PART_TIMEOUT_S = 600
PAIRS = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="groups, workloads or patterns of them; else everything"
    )
    parser.add_argument("--list", action="store_true", help="print the names, and what each workload is")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="turns of each side (default: %(default)s)")
    parser.add_argument(
        "--scale", type=float, default=1, help="share of the usual amount of work in a turn (default: 1)"
    )
    parser.add_argument("--full", action="store_true", help="all workloads of a group, not only the main ones")
    parser.add_argument("--only", metavar="LABEL", help="measure one side alone, for example Odradek")
    parser.add_argument("--report", type=Path, metavar="DIR", help="where the report goes (default: build/bench/TIME)")
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="JSON", help="make one report of those of earlier runs"
    )
    arguments = parser.parse_args()
    directory = arguments.report or REPOSITORY / "build" / "bench" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if arguments.list:
        print_names()
        return 0
    if arguments.merge:
        write_report([run for path in arguments.merge for run in saved(path)], directory)
        return 0
    unknown = [name for name in arguments.names if not is_known(name)]
    if unknown:
        parser.error(f"no benchmark of the name {', '.join(sorted(unknown))}; --list prints them all")
    names = arguments.names or [*GROUPS, *BESIDE_APACHE, *PARTS]
    started = time.perf_counter()
    print(f"load of the machine {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", flush=True)
    failed = run_workloads(arguments, names, directory)
    run_beside_apache([name for name in names if name in BESIDE_APACHE])
    failed += [f"bench_{name}" for name in names if name in PARTS and not run_part(name)]
    print(f"\n{time.perf_counter() - started:.0f} s, load of the machine {os.getloadavg()[0]:.2f}")
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed else 0


def print_names() -> None:
    for workload in workloads():
        print(f"{workload.name}{'' if workload.main else ' (--full)'}: {workload.description}")
    print("\n".join([*BESIDE_APACHE, *PARTS]))


def run_workloads(arguments: argparse.Namespace, names: Sequence[str], directory: Path) -> list[str]:
    """Run those named and write the report; the names of those that failed."""
    chosen = chosen_workloads(names, full=arguments.full)
    if not chosen:
        return []
    started, load_before = datetime.now(UTC), os.getloadavg()[0]
    labels = [arguments.only] if arguments.only else []
    results: list[Result] = []

    def show(result: Result) -> None:
        results.append(result)
        print(table(result), flush=True)

    try:
        with contenders(arguments.scale) as made:
            Runner(made, arguments.pairs, labels, show).run(chosen)
    finally:  # a run that is stopped has a report of what it has measured
        run = Run(
            command=f'make bench ARGS="{" ".join(sys.argv[1:])}"',
            started=f"{started:%Y-%m-%d %H:%M}",
            machine=this_machine(),
            load_before=load_before,
            load_after=os.getloadavg()[0],
            duration_s=(datetime.now(UTC) - started).total_seconds(),
            pairs=arguments.pairs,
            scale=arguments.scale,
            results=results,
        )
        print(f"\nreport: {write_report([run], directory)}")
    return [result.name for result in results if result.error]


def run_beside_apache(names: Sequence[str]) -> None:
    if not names:
        return
    with contenders() as made:
        for name in names:
            importlib.import_module(f"tests.benchmarks.beside_apache.{name}").run(made)


def run_part(name: str) -> bool:
    """One `parts/bench_*.py`, alone in a process, because memory left by one would slow down the next."""
    print(f"\nbench_{name}", flush=True)
    command = [sys.executable, "-m", f"tests.benchmarks.parts.bench_{name}"]
    try:
        return subprocess.run(command, timeout=PART_TIMEOUT_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the brokers end with the run
    sys.exit(main())
