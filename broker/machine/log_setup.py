"""The daemon's log on stderr: a line an event, as text in the format of Apache Kafka's log, or as JSON.

    [2026-01-31 12:00:00,123] INFO [KafkaServer id=0] started (odradek.broker.server)

    {"time": "2026-01-31T11:00:00.123Z", "level": "INFO", "logger": "odradek.broker.server",
     "message": "[KafkaServer id=0] started"}

The JSON of an event is one line. With an exception it has the traceback as `exception`. As text, only a traceback takes
more lines, and it means a bug. Data from a client cannot forge a line in either form, and a line is at most
`LINE_CHARACTERS_MAX` long.

Kafka: log4j.properties.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.line_limit import LineLimit, cut

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
TEXT, JSON = "text", "json"
FORMATS: Final = (TEXT, JSON)
LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR")
LEVEL_VARIABLE: Final = "ODRADEK_LOG_LEVEL"
FORMAT_VARIABLE: Final = "ODRADEK_LOG_FORMAT"

TRACE: Final = 5
REQUEST_LOGGER: Final = "kafka.request.logger"
AUTHORIZER_LOGGER: Final = "kafka.authorizer.logger"
"""At INFO, whatever the level of the others is, as in Apache Kafka's settings."""

_LEVEL_NAMES: Final = {TRACE: "TRACE", logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}

_QUIET: Final = ("asyncio", "kazoo", REQUEST_LOGGER)
"""Loggers at WARN, whatever the level of the others is. Apache Kafka's settings do the same with the request log."""


def add_log_level(parser: argparse.ArgumentParser) -> None:
    """Add --log-level to a daemon's options. Capitals or not, in the option and in the variable."""
    parser.add_argument(
        "--log-level",
        type=lambda text: _chosen(text.upper(), LEVELS, LEVEL_VARIABLE),
        default=os.environ.get(LEVEL_VARIABLE) or "INFO",
        choices=LEVELS,
        help=f"of the log on stderr; by default that of {LEVEL_VARIABLE}, or INFO",
    )


def add_log_format(parser: argparse.ArgumentParser) -> None:
    """Add --log-format to a daemon's options, as `add_log_level` does."""
    parser.add_argument(
        "--log-format",
        type=lambda text: _chosen(text.lower(), FORMATS, FORMAT_VARIABLE),
        default=os.environ.get(FORMAT_VARIABLE) or TEXT,
        choices=FORMATS,
        help=f"json: an object a line; by default that of {FORMAT_VARIABLE}, or text",
    )


def _chosen(text: str, choices: Sequence[str], variable: str) -> str:
    """argparse compares the choices with what an option says, but not with the default, which the variable sets."""
    if text not in choices:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(
            f"invalid choice: {text!r} (choose from {', '.join(choices)}; {variable} sets the default)"
        )
    return text


def configure_logging(level: str = "INFO", form: str = TEXT) -> None:
    """Send everything from `level` on to stderr, in a form of `FORMATS`."""
    for number, name in _LEVEL_NAMES.items():
        logging.addLevelName(number, name)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(form))
    handler.addFilter(LineLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for quiet in _QUIET:
        logging.getLogger(quiet).setLevel(logging.WARNING)
    logging.getLogger(AUTHORIZER_LOGGER).setLevel(logging.INFO)


@contextmanager
def muted(library: str) -> Iterator[None]:
    """Print nothing below FATAL of a library that also raises what it logs."""
    log = logging.getLogger(library)
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _formatter(form: str) -> logging.Formatter:
    if form != JSON:
        return _OneLine(FORMAT)
    from odradek.broker.machine.json_lines import JsonLine  # a start with text does not import what it needs

    return JsonLine()


_ESCAPES: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\t"},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""Characters that end a line, or that a terminal obeys."""


class _OneLine(logging.Formatter):
    """Escapes line breaks and control characters: data from a client can neither forge log lines nor hide them."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = cut(record.message)
        line = super().formatMessage(record)
        return line if line.isprintable() else line.translate(_ESCAPES)
