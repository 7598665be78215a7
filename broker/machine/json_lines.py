"""The daemon's log as JSON: an object a line, for what collects the logs of containers.

    time       UTC, RFC 3339 with milliseconds
    level      TRACE, DEBUG, INFO, WARN, ERROR or FATAL
    logger     the name of the logger
    message    the text
    exception  the traceback, where there is one

Everything outside of ASCII is escaped, and so are line breaks.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from odradek.broker.machine.line_limit import cut


class JsonLine(logging.Formatter):
    """Formats a record as one object."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "time": time,
            "level": record.levelname,
            "logger": record.name,
            "message": cut(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)
