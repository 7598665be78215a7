"""Limits the log lines that clients can cause: a flood of one kind is cut down, and the next line says by how much.

A kind is the text of the message before its arguments are put in. Only lines at INFO and above of the modules that
serve clients are limited. Lines at DEBUG are all printed.

Kafka has nothing like it: there, 100,000 bad requests are 100,000 lines or more.
"""

from __future__ import annotations

import logging
from typing import Final

BURST: Final = 200
"""Lines of one kind at once."""

LINES_PER_S: Final = 10
"""Lines of one kind in the long run."""

LINE_CHARACTERS_MAX: Final = 32 * 1024
"""Longer messages are cut off."""

KINDS_MAX: Final = 1_000
"""With more kinds than this, all counts begin again."""

LIMITED: Final = (
    "odradek.broker.apis",
    "odradek.broker.config",
    "odradek.broker.coordinators",
    "odradek.broker.dispatch",
    "odradek.broker.metadata",
    "odradek.broker.network",
    "odradek.broker.replica_manager",
    "odradek.broker.security",
    "odradek.controller.admin",
    "odradek.controller.topic_changes",
    "odradek.controller.topic_deletion",
    "odradek.coordinator",
    "odradek.storage.log.log_start",
)
"""Loggers with lines that clients can cause. State changes of partitions, ISRs and elections are not among them."""


class _Kind:
    __slots__ = ("left", "left_out", "seen_s")

    def __init__(self, now_s: float) -> None:
        self.left: float = BURST
        self.left_out = 0
        self.seen_s = now_s


class LineLimit(logging.Filter):
    """A token bucket for each kind of line. The time is that of the records."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[tuple[str, int, object], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is printed."""
        if record.levelno < logging.INFO or not record.name.startswith(LIMITED):
            return True
        now_s = record.created
        key = (record.name, record.lineno, record.msg if isinstance(record.msg, str) else None)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= KINDS_MAX:
                self._kinds.clear()
            kind = self._kinds[key] = _Kind(now_s)
        kind.left = min(BURST, kind.left + max(0.0, now_s - kind.seen_s) * LINES_PER_S)
        kind.seen_s = now_s
        if kind.left < 1:
            kind.left_out += 1
            return False
        kind.left -= 1
        if kind.left_out:
            record.msg = f"{record.getMessage()} ({kind.left_out} more like this since the last line)"
            record.args = None
            kind.left_out = 0
        return True


def cut(message: str) -> str:
    """A message without what is beyond `LINE_CHARACTERS_MAX`."""
    if len(message) <= LINE_CHARACTERS_MAX:
        return message
    return f"{message[:LINE_CHARACTERS_MAX]}... ({len(message)} characters)"
