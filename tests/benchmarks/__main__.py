"""All benchmarks, or those named: `make bench`, `make bench ARGS="start_up produce"`; `ARGS=--list` prints the names.

Two kinds. `beside_apache/` runs Odradek and Apache Kafka 3.9 with the same load in the same run and prints ratios.
`parts/bench_*.py` measure one part of Odradek each, in a process of their own. Nothing is asserted, because figures
differ between machines and days. The whole run takes about fifteen minutes, and `spark` five to twelve more.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.contenders import contenders

HERE = Path(__file__).parent
BESIDE_APACHE = (
    "start_up",
    "test_kit",
    "commands",
    "produce",
    "consume",
    "tls",
    "latency",
    "transactions",
    "create_topics",
    "failover",
    "idle_partitions",
    "long_polling",
    "pauses",
    "compaction",
    "spark",
)
PARTS = tuple(sorted(path.stem.removeprefix("bench_") for path in (HERE / "parts").glob("bench_*.py")))
PART_TIMEOUT_S = 600


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them if none is given")
    parser.add_argument("--list", action="store_true", help="print the names")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join([*BESIDE_APACHE, *PARTS]))
        return 0
    unknown = set(arguments.names) - {*BESIDE_APACHE, *PARTS}
    if unknown:
        parser.error(f"no benchmark of the name {', '.join(sorted(unknown))}; --list prints them all")
    chosen = arguments.names or [*BESIDE_APACHE, *PARTS]
    started = time.perf_counter()
    print(f"load of the machine {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    run_beside_apache([name for name in chosen if name in BESIDE_APACHE])
    failed = [name for name in chosen if name in PARTS and not run_part(name)]
    print(f"\n{time.perf_counter() - started:.0f} s, load of the machine {os.getloadavg()[0]:.2f}")
    for name in failed:
        print(f"failed: bench_{name}")
    return 1 if failed else 0


def run_beside_apache(names: list[str]) -> None:
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
    sys.exit(main())
