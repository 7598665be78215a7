"""The daemon with another wall clock: `python -m tests.support.apache_tests.daemon_at MS serve ...`.

Some of Apache's tests give their broker a clock that begins at 0, and write records of the first seconds of 1970, which
retention would take away at once today. The wall clock begins at MS milliseconds here, and goes on from there.
"""

from __future__ import annotations

import sys

from odradek.broker.cli import main
from odradek.timer.clock import SystemClock


def begin_at(start_ms: int) -> None:
    """Set every wall clock of this process to `start_ms`."""
    real_ms = SystemClock().monotonic_ms
    began_ms = real_ms()

    def time_ms(_: SystemClock) -> int:
        return start_ms + real_ms() - began_ms

    SystemClock.time_ms = time_ms  # type: ignore[method-assign]


if __name__ == "__main__":
    begin_at(int(sys.argv.pop(1)))
    sys.exit(main())
