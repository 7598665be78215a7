"""The daemon's log: one line an event on stderr, in the format of Apache Kafka's log.

    [2026-01-31 12:00:00,123] INFO [KafkaServer id=0] started (odradek.broker.server)

Only a traceback takes more lines, and it means a bug.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
_LEVEL_NAMES: Final = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}


class _OneLine(logging.Formatter):
    """Escapes line breaks: data from a client cannot forge log lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record).replace("\n", "\\n").replace("\r", "\\r")


def configure_logging(level: str = "INFO") -> None:
    """Send everything from `level` on to stderr."""
    for number, name in _LEVEL_NAMES.items():
        logging.addLevelName(number, name)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.getLogger("kazoo").setLevel(logging.WARNING)
