"""The areas of the suite, and the share of its time that each takes: printed at the end of every run."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

AREAS: Final = (
    (
        "cluster",
        r"/cluster/|simulation|links|unit/controller|replication|/isr|in_sync|alter_partition|zookeeper"
        r"|network_partitions|soak/.*cluster",
    ),
    ("exactly once", r"transaction|idempoten|bank|producer_state|producer_id|txn|zombie|exactly"),
    (
        "storage",
        r"tests/crash|unit/storage|golden/.*log|interchange|compaction|log_cleaning|retention|alter_log_dirs|dump_log"
        r"|legacy_segments|full_disk|test_verify|power_loss|torn_files|sendfile|kill9|read_by_kafka",
    ),
)
"""What the path of a test says about its area; the first that fits. All others are the first area, `FIRST`."""

FIRST: Final = "first light"


def area_of(path: str) -> str:
    """The area of a test file, by its path from the root of the repository."""
    return next((name for name, pattern in AREAS if re.search(pattern, path)), FIRST)


class AreaTimes:
    """Seconds per area, set-up and tear-down included."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, path: str, duration_s: float) -> None:
        self._seconds[area_of(path)] += duration_s

    def __str__(self) -> str:
        shares = ", ".join(
            f"{name} {seconds:.0f} s" for name, seconds in sorted(self._seconds.items(), key=lambda each: -each[1])
        )
        return f"time by area: {shares}"
