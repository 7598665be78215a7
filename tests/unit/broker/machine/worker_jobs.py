"""Functions for worker processes. A module of their own, because a worker process imports the module of its job."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

Report = Callable[[object], None]


def process_id(argument: int, report: Report) -> int:
    report(argument)
    logging.getLogger("odradek.test").warning("job %d", argument)
    return os.getpid()


def environment(argument: object, report: Report) -> dict[str, str]:
    return dict(os.environ)


def fail(argument: object, report: Report) -> None:
    raise OSError(5, "Input/output error")


def stumble(argument: object, report: Report) -> None:
    raise KeyError(argument)


def never_end(argument: object, report: Report) -> None:
    report("begun")
    threading.Event().wait()


def print_and_end(argument: object, report: Report) -> str:
    print("nothing for the broker")
    return "done"
