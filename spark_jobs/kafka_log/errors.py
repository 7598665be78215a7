"""The errors of the data source: one line each, which says what to do.

An error that is raised in a Python worker reaches the driver as text inside an error of Spark, below a traceback;
`reason` of `spark_jobs.common.job` finds the line again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.kafka_log.options import ReadOptions


class KafkaLogError(Exception):
    """The logs cannot be read like this; the message is one line."""


class CorruptLogFileError(KafkaLogError):
    """A file has bytes that are no valid batch."""


class DataLossError(KafkaLogError):
    """Offsets that were planned are gone: retention, a deleted topic, a truncated log."""


def report_loss(line: str, options: ReadOptions) -> None:
    """Say that offsets are lost. Raises: DataLossError if that is an error (failOnDataLoss)."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{line} (failOnDataLoss=false goes on without them)")
    warn(line)


def warn(line: str) -> None:
    """Write a line to stderr, which is in an executor's log. One write, since the JVM logs there, too."""
    sys.stderr.write(f"kafka_log: warning: {line}\n")
    sys.stderr.flush()
