"""The daemon with a wall clock that a test sets: `python -m tests.soak.daemon.jumping_daemon serve ...`.

The file that ODRADEK_CLOCK_OFFSET names holds the milliseconds that are added to the machine's wall clock, as eight
bytes in the machine's order; the monotonic clock does not change.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from pathlib import Path

from odradek.timer.clock import SystemClock
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker

OFFSET = struct.Struct("=q")
VARIABLE = "ODRADEK_CLOCK_OFFSET"


class JumpingBroker(OdradekBroker):
    """A broker whose wall clock `jump` sets."""

    module = "tests.soak.daemon.jumping_daemon"
    python_path = (REPOSITORY / "src", REPOSITORY)

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        super().__init__(directory, settings)
        self._file = directory / "offset"
        self._file.write_bytes(OFFSET.pack(0))
        self.prefix = ("/usr/bin/env", f"{VARIABLE}={self._file}")

    def jump(self, offset_ms: int) -> None:
        """From now on the broker's wall clock differs from the machine's by that much."""
        with self._file.open("r+b") as file:
            os.pwrite(file.fileno(), OFFSET.pack(offset_ms), 0)


def install() -> None:
    with Path(os.environ[VARIABLE]).open("r+b") as file:
        offset = mmap.mmap(file.fileno(), OFFSET.size)
    SystemClock.time_ms = lambda self: time.time_ns() // 1_000_000 + OFFSET.unpack_from(offset)[0]  # type: ignore[method-assign]


if __name__ == "__main__":
    install()
    from odradek.broker.cli import main

    sys.exit(main())
