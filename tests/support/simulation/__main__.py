"""Run seeds: `python -m tests.support.simulation FIRST [COUNT] [--trace]`. The trace of a seed that fails is printed.

Python salts the hashes of texts, and so the order of sets, differently in each process. The simulation runs itself
again without the salt, so that a seed does the same in every process.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NoReturn

from tests.support.simulation.clean_stops import CleanStopSimulation
from tests.support.simulation.cluster import Simulation
from tests.support.simulation.recompression import RecompressionSimulation
from tests.support.simulation.transactions import TransactionSimulation

FASTEST_DISK = "/dev/shm"
KINDS = {
    "--transactions": TransactionSimulation,
    "--clean-stops": CleanStopSimulation,
    "--recompression": RecompressionSimulation,
}


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "tests.support.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    parser = argparse.ArgumentParser(prog="tests.support.simulation")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many seeds from there on")
    parser.add_argument("--trace", action="store_true", help="print the whole trace of every seed")
    kinds = parser.add_mutually_exclusive_group()
    for option, simulation in KINDS.items():
        kinds.add_argument(option, dest="kind", action="store_const", const=simulation, default=Simulation)
    arguments = parser.parse_args()
    kind = arguments.kind
    seeds = range(arguments.first, arguments.first + arguments.count)
    failed = [seed for seed in seeds if not run_seed(kind, seed, prints_trace=arguments.trace)]
    print(f"{len(failed)} of {len(seeds)} seeds failed: {failed}")
    return 1 if failed else 0


def run_seed(kind: type[Simulation], seed: int, *, prints_trace: bool) -> bool:
    """Run a seed in a process of its own; whether everything held.

    Whatever a run leaves in memory ends with its process. In the next run, Python would free the coroutines of brokers
    that were killed in this one, and run their `finally` blocks in the turn of a broker that lives.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run_and_exit(kind, seed, prints_trace=prints_trace)
    _, status = os.waitpid(child, 0)
    return status == 0


def _run_and_exit(kind: type[Simulation], seed: int, *, prints_trace: bool) -> NoReturn:
    """The child's side. `os._exit` frees nothing, so no coroutine of the run gets to its `finally` block."""
    status = 1
    try:
        disk = FASTEST_DISK if os.path.isdir(FASTEST_DISK) else None
        with tempfile.TemporaryDirectory(prefix="odradek-simulation-", dir=disk) as directory:
            simulation = kind(seed, Path(directory))
            start_s = time.perf_counter()
            failure = None
            try:
                simulation.run()
            except Exception as error:  # noqa: BLE001 - whatever it is, the seed goes with it
                failure = error
        _print_run(simulation, failure, prints_trace=prints_trace)
        print(f"  ({time.perf_counter() - start_s:.2f} s)", file=sys.stderr, flush=True)
        status = 0 if failure is None else 1
    except BaseException:  # noqa: BLE001 - the child must not go on as the parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _print_run(simulation: Simulation, failure: Exception | None, *, prints_trace: bool) -> None:
    seed = simulation.seed
    if prints_trace:
        print("\n".join(simulation.trace))
    elif failure is not None:
        print(simulation.story())
    if failure is not None:
        print("".join(traceback.format_exception(failure)))
        options = ["--trace", *(option for option, kind in KINDS.items() if kind is type(simulation))]
        print(f"Replay: python -m tests.support.simulation {seed} {' '.join(options)}")
    outcome = simulation.outcome if failure is None else f"FAILED {type(failure).__name__}: {failure}"
    print(f"seed {seed}: {outcome}")


if __name__ == "__main__":
    sys.exit(main())
