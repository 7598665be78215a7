"""What metrics add to a request, in instructions of the processor; needs valgrind.

For each kind of request: a broker without metrics, one that counts the requests, and one that takes the times of all of
them. How many are timed depends on their rate; at the rates below, the cost of both together.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.metrics.request_metrics import SAMPLES_PER_SECOND
from tests.benchmarks.metrics_cost.instructions import Mode, instructions
from tests.benchmarks.metrics_cost.loads import LOADS
from tests.benchmarks.metrics_cost.turns import percent

RATES: Final = (100, 1_000, 10_000)
"""Requests a second of one API."""


def main() -> None:
    found = instructions(LOADS)
    rates = ", ".join(f"{rate} a second" for rate in RATES)
    print(f"  instructions of a request without metrics; more when counted, and when timed, too; in all at {rates}")
    for load in LOADS:
        off, counted, timed = (found[load.name, mode] for mode in Mode)
        shares = [min(1, SAMPLES_PER_SECOND / rate) for rate in RATES]
        in_all = [percent((counted + share * (timed - counted)) / off) for share in shares]
        print(f"    {load.name:48} {off:10,.0f} {percent(counted / off)} {percent(timed / off)}; {', '.join(in_all)}")


if __name__ == "__main__":
    main()
