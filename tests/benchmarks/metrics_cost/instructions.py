"""What metrics add to a request, in instructions of the processor (user mode), as valgrind counts them.

Other work on the machine does not change them, so that a tenth of a percent can be seen. The brokers are in the process
that is counted, without event loop, sockets and kernel. These cost the same with metrics and without: of a whole broker
metrics are a smaller part.
"""

from __future__ import annotations

import asyncio
import enum
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product, repeat
from pathlib import Path
from typing import Final
from unittest.mock import patch

from odradek.broker.metrics import request_metrics
from odradek.timer.clock import ManualClock
from tests.benchmarks.counts.sequences import flush, log_of
from tests.benchmarks.metrics_cost.loads import LOADS, PARTITIONS, SETTINGS, TOPIC, Load, prepare
from tests.support.garbage import no_collection
from tests.support.in_process.connections.network import FakeOwner, Link
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.in_process.scraping import ScrapedBroker

MODULE: Final = "tests.benchmarks.metrics_cost.instructions"

COLLECTED: Final = "sys_call_tracing"
"""The C function of `sys.call_tracing`, which calls what it is given. Only what happens in it is counted."""

WARM_UP: Final = 50
"""Requests that are not counted: they load modules, generate codecs and fill caches."""


class Mode(enum.Enum):
    """What metrics do with the requests."""

    OFF = "off"
    COUNTED = "counted"
    """None is in the sample whose times are taken."""
    TIMED = "timed"
    """Each is in it."""


class StandingClock(ManualClock):
    """Time stands still: how much is done in one slice does not depend on the speed of the machine."""

    def __init__(self) -> None:
        super().__init__(1_700_000_000_000)
        self.monotonic_ns = repeat(super().monotonic_ns()).__next__  # type: ignore[method-assign]
        """In C, as that of `SystemClock`."""


class Requests:
    """The same request again and again, on one connection of a broker in this process."""

    def __init__(self, broker: InProcessBroker, mode: Mode) -> None:
        owner = FakeOwner()
        owner.clock = broker.clock  # type: ignore[assignment]
        owner.handle = broker.dispatch  # type: ignore[assignment]
        self._scraped = None if mode is Mode.OFF else ScrapedBroker(broker)
        if self._scraped is not None:
            owner.sent_bytes = self._scraped.sources.sent_bytes
        self._mode = mode
        self._broker = broker
        self._link = Link(owner)
        prepare(broker)

    def prepared(self, load: Load) -> bytes:
        """The frame of a request that the broker has answered a few times. All records are on the disk, and what is
        read is in memory: no thread is asked for it.
        """
        for partition in range(PARTITIONS):
            flush(self._broker, log_of(self._broker, TOPIC, partition))
        frame = load.frame(self._broker)
        self._share_of_sample()
        for _ in range(WARM_UP):
            self.run(frame, 1, waits=True)
        self._share_of_sample()
        return frame

    def _share_of_sample(self) -> None:
        if self._scraped is not None:
            for counter in self._scraped.sources.requests._counters:
                counter._every = counter._gap = counter.left = 1 if self._mode is Mode.TIMED else sys.maxsize

    def run(self, frame: bytes, requests: int, *, waits: bool = False) -> None:
        """`waits`: the first reads of an index are made by a thread."""
        link, owner, wire = self._link, self._link.owner, self._link.wire

        async def receive() -> None:
            for _ in range(requests):
                link.receive(frame)
                owner.run_soon()
                while waits and not wire.data:
                    await asyncio.sleep(0)
                assert wire.data
                wire.data.clear()
                wire.writers.clear()

        self._broker.loop.run_until_complete(receive())


def instructions(loads: Sequence[Load], share: float = 1) -> Mapping[tuple[str, Mode], float]:
    """Of one request of each load in each mode, the mean of a share of the requests of a turn."""
    with tempfile.TemporaryDirectory() as directory:
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out"]
        only = [f"--toggle-collect={COLLECTED}", f"--dump-after={COLLECTED}"]
        work = [sys.executable, "-m", MODULE, directory, str(share), *(load.name for load in loads)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        ended = subprocess.run([*valgrind, *only, *work], env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return {
            (load.name, mode): _collected(Path(f"{directory}/out.{number}")) / (load.requests * share)
            for number, (load, mode) in enumerate(product(loads, Mode), 1)
        }


def _collected(dump: Path) -> int:
    found = re.search(r"^(?:summary|totals): (\d+)", dump.read_text(), re.MULTILINE)
    assert found is not None, f"{dump} has no total"
    return int(found[1])


@contextmanager
def brokers(directory: Path) -> Iterator[Mapping[Mode, Requests]]:
    """A broker for each mode; of `TIMED` each request is in the sample."""
    settings = {**SETTINGS, "odradek.metrics.listener": "0"}  # without sockets nothing listens
    with patch.object(request_metrics, "SAMPLES_A_BURST", sys.maxsize), ExitStack() as stack:
        found = {}
        for mode in Mode:
            broker = stack.enter_context(in_process_broker(directory / mode.value, settings, clock=StandingClock()))
            found[mode] = Requests(broker, mode)
        yield found


def main(directory: str, share: str, *names: str) -> None:
    """In the process that is counted: one call of `sys.call_tracing` for each load and mode."""
    with brokers(Path(directory)) as modes:
        for load in LOADS:
            if load.name not in names:
                continue
            for requests in modes.values():
                frame = requests.prepared(load)
                with no_collection():
                    sys.call_tracing(requests.run, (frame, round(load.requests * float(share))))


if __name__ == "__main__":
    main(*sys.argv[1:])
