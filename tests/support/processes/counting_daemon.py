"""The daemon, with a count of the calls that move the bytes of segments.

`python -m tests.support.processes.counting_daemon serve ...` starts it.

Each call on a descriptor of a `.log` file is counted with the bytes it brought into Python (read, pread, preadv) or
gave straight to a socket (sendfile). Opening such a file in any other way is counted too. SIGUSR1 prints the counts
as one line of JSON and starts them afresh.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable

COUNTS: Counter[str] = Counter()
MARK = "COUNTS "


def is_segment(fd: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").endswith(".log")
    except OSError:
        return False


def counted(name: str, original: Callable[..., object], fd_position: int, measure: Callable[[object], int]) -> object:
    def call(*args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs)
        if is_segment(int(args[fd_position])):  # type: ignore[call-overload]
            COUNTS[name] += measure(result)
        return result

    return call


def install() -> None:
    os.sendfile = counted("sendfile", os.sendfile, 1, int)  # type: ignore[assignment,arg-type]
    os.read = counted("python", os.read, 0, len)  # type: ignore[assignment,arg-type]
    os.pread = counted("python", os.pread, 0, len)  # type: ignore[assignment,arg-type]
    os.preadv = counted("python", os.preadv, 0, int)  # type: ignore[assignment,arg-type]
    plain_open = builtins.open

    def open_counted(file: object, *args: object, **kwargs: object) -> object:
        if str(file).endswith(".log"):
            COUNTS["opened as a Python file"] += 1
        return plain_open(file, *args, **kwargs)  # type: ignore[call-overload]

    builtins.open = open_counted  # type: ignore[assignment]


def report(*_: object) -> None:
    os.write(1, f"{MARK}{json.dumps(dict(COUNTS))}\n".encode())
    COUNTS.clear()


if __name__ == "__main__":
    install()
    signal.signal(signal.SIGUSR1, report)
    from odradek.broker.cli import main

    sys.exit(main())
