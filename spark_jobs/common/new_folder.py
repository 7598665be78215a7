"""A folder that a batch job writes must be new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_new(spark: SparkSession, path: str) -> None:
    """Refuse a folder that is there, on any file system that Spark knows, before hours of work. Raises: JobError."""
    jvm = spark._jvm
    assert jvm is not None
    folder = jvm.org.apache.hadoop.fs.Path(path)
    if folder.getFileSystem(spark._jsc.hadoopConfiguration()).exists(folder):
        raise JobError(f"the output {path} is there already: name a new folder")
