"""The daemon with a report of its objects: `python -m tests.soak.daemon.inspected_daemon serve ...`.

SIGUSR1 prints the numbers that must not grow as one line of JSON: tasks of the timer, operations in the purgatories,
asyncio tasks, and how many objects of each of Odradek's own types are alive.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path

from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.system_timer import SystemTimer
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually

MARK = "INSIDE "
REPORT = re.compile(rf"^{MARK}(.*)\n", re.MULTILINE)
TYPES_SHOWN = 40

TIMERS: list[SystemTimer] = []
PURGATORIES: list[DelayedOperationPurgatory] = []  # type: ignore[type-arg]


class InspectedBroker(OdradekBroker):
    """A broker that tells how much is inside."""

    module = "tests.soak.daemon.inspected_daemon"
    python_path = (REPOSITORY / "src", REPOSITORY)

    def inside(self) -> dict[str, int]:
        """The counts of now."""
        seen = self.log_text().count(MARK)
        os.kill(self.pid, signal.SIGUSR1)
        reports = eventually(lambda: REPORT.findall(self.log_text()), accept=lambda found: len(found) > seen)
        counts: dict[str, int] = json.loads(reports[-1])
        return counts


def install() -> None:
    """Note every timer and purgatory that is made. (The collector does not show what `gc.freeze` has put aside.)"""
    timer_init, purgatory_init = SystemTimer.__init__, DelayedOperationPurgatory.__init__

    def new_timer(self: SystemTimer, *args: object, **kwargs: object) -> None:
        timer_init(self, *args, **kwargs)  # type: ignore[arg-type]
        TIMERS.append(self)

    def new_purgatory(self: DelayedOperationPurgatory, *args: object) -> None:  # type: ignore[type-arg]
        purgatory_init(self, *args)  # type: ignore[arg-type]
        PURGATORIES.append(self)

    SystemTimer.__init__ = new_timer  # type: ignore[method-assign,assignment]
    DelayedOperationPurgatory.__init__ = new_purgatory  # type: ignore[method-assign,assignment]


def report(*_: object) -> None:
    gc.collect()
    classes = (type(thing) for thing in gc.get_objects())
    own = Counter(cls.__name__ for cls in classes if str(cls.__module__).startswith("odradek."))
    counts = {
        "timer": sum(timer.size for timer in TIMERS),
        "delayed": sum(purgatory.num_delayed for purgatory in PURGATORIES),
        "watched": sum(purgatory.watched for purgatory in PURGATORIES),
        "tasks": len(asyncio.all_tasks(asyncio.get_event_loop_policy().get_event_loop())),
        "objects": len(gc.get_objects()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
    }
    counts |= {f"type {name}": count for name, count in own.most_common(TYPES_SHOWN)}
    os.write(1, f"{MARK}{json.dumps(counts)}\n".encode())


if __name__ == "__main__":
    install()
    signal.signal(signal.SIGUSR1, report)
    from odradek.broker.cli import main

    sys.exit(main())
