"""The last warnings and errors that a broker has logged, for the failure report.

Several brokers may share a process and its loggers. A line belongs to the broker on whose event loop it was logged;
lines of other threads (reads of files, the metadata tree) belong to every broker of the process.

Python writes warnings to stderr while a logger has no handler. This handler must not change that, so it passes the line
on to `logging.lastResort` when it is the only one.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Final

LINES_MAX: Final = 200

LOGGER: Final = logging.getLogger("odradek")
"""The parent of all loggers of a broker."""


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
        if logging.lastResort is not None and self._is_alone():
            logging.lastResort.handle(record)
        if record.thread == self._thread or record.thread not in self.loop_threads:
            error = record.exc_info[1] if record.exc_info else None
            because = "" if error is None else f": {error!r}"
            self._lines.append(f"{record.levelname} {record.name}: {record.getMessage()}{because}")

    def _is_alone(self) -> bool:
        others = [
            *logging.getLogger().handlers,
            *(each for each in LOGGER.handlers if not isinstance(each, WarningLines)),
        ]
        return not others and self is LOGGER.handlers[0]

    @property
    def lines(self) -> list[str]:
        return list(self._lines)

    def clear(self) -> None:
        self._lines.clear()

    def close(self) -> None:
        self.loop_threads.discard(self._thread)
        super().close()
