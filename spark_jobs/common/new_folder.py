"""A folder that a batch job writes must be new. What a run that was cut off has left in it does not count.

Spark writes the files of a job below `_temporary` and moves them into the folder when all are complete. A run that was
killed leaves `_temporary`, one that failed or was stopped an empty folder; neither holds a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError, say
from spark_jobs.common.spark_folder import SparkFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNFINISHED = "_temporary"


def check_new(spark: SparkSession, path: str) -> None:
    """Refuse a folder that holds anything, before hours of work. Raises: JobError."""
    if set(SparkFolder(spark, path).names()) - {UNFINISHED}:
        raise JobError(f"the output {path} is there already: name a new folder")


def write_new(rows: DataFrame, path: str, file_format: str) -> None:
    """Write rows into a new folder. Raises: JobError if it holds anything by now."""
    check_new(rows.sparkSession, path)
    SparkFolder(rows.sparkSession, path).remove()
    rows.write.format(file_format).save(path)
    say(f"written: {path}")
