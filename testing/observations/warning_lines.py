"""The last warnings and errors that a broker has logged, for the failure report.

Several brokers may share a process and its loggers. A line belongs to the broker on whose event loop it was logged;
lines of other threads (reads of files, the metadata tree) belong to every broker of the process.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Final

LINES_MAX: Final = 200


class WarningLines(logging.Handler):
    """A handler for the broker whose event loop runs in the thread that makes it."""

    loop_threads: Final[set[int]] = set()
    """The threads with the event loop of a broker."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread = threading.get_ident()
        self.loop_threads.add(self._thread)
        self._lines: deque[str] = deque(maxlen=LINES_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread or record.thread not in self.loop_threads:
            error = record.exc_info[1] if record.exc_info else None
            because = "" if error is None else f": {error!r}"
            self._lines.append(f"{record.levelname} {record.name}: {record.getMessage()}{because}")

    @property
    def lines(self) -> list[str]:
        return list(self._lines)

    def clear(self) -> None:
        self._lines.clear()

    def close(self) -> None:
        self.loop_threads.discard(self._thread)
        super().close()
