"""The longest pause of the event loop in each situation that needs much work at once.

    python -m tests.benchmarks.parts.bench_loop_pauses [--quick] [NAME ...]

Every situation is brought about over the network on a broker of its own process, which watches its loop itself
(`loop_pauses/watch.py` says what the columns are). `--quick` takes a tenth of the sizes. Situations beyond the limit
are named at the end.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.benchmarks.loop_pauses import busy_disk, fetches, groups, handshakes, partitions, produces
from tests.benchmarks.loop_pauses.watch import LIMIT_MS, WatchedBroker

SCENES = {
    "partitions": partitions.run,
    "groups": groups.run,
    "fetches": fetches.run,
    "produces": produces.run,
    "handshakes": handshakes.run,
    "busy_disk": busy_disk.run,
}
SETTINGS = {"handshakes": handshakes.settings, "busy_disk": busy_disk.settings}
FULL, QUICK = 10_000, 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENES)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    arguments = parser.parse_args()
    beyond = []
    for name in arguments.names or SCENES:
        with tempfile.TemporaryDirectory(prefix="odradek-bench-") as path:
            watched = WatchedBroker(Path(path), SETTINGS[name](Path(path)) if name in SETTINGS else {})
            try:
                SCENES[name](watched, QUICK if arguments.quick else FULL)
            finally:
                watched.broker.close()
            beyond += watched.beyond
    print(f"\nbeyond {LIMIT_MS} ms: {', '.join(beyond) or 'none'}")


if __name__ == "__main__":
    main()
