"""Run seeds: `python -m tests.support.simulation FIRST [COUNT]`. A seed that fails is told with its trace.

Python salts the hashes of texts for each process, and with them the order of sets. So that a seed does the same in
every process, the simulation runs itself again without the salt.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.support.simulation.cluster import Simulation


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.support.simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="odradek-simulation-", dir=_fastest_disk()) as directory:
            simulation = Simulation(seed, Path(directory))
            start_s = time.perf_counter()
            try:
                simulation.run()
            except BaseException as error:
                failed += 1
                print(simulation.story())
                print(f"seed {seed} failed: {type(error).__name__}: {error}", flush=True)
                if count == 1:
                    raise
            else:
                print(
                    f"seed {seed}: {time.perf_counter() - start_s:.2f} s, {simulation.trace[-1]} {simulation.trace[-2]}",
                    flush=True,
                )
    return 1 if failed else 0


def _fastest_disk() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


if __name__ == "__main__":
    sys.exit(main())
