"""The history of samples: a folder of Parquet files, one for each sample, in folders by date (UTC).

Spark makes a file visible when it is complete, so a run that is killed leaves no half sample.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_jobs.common.spark_folder import SparkFolder
from spark_jobs.lag.trends import SAMPLE_SCHEMA, Sample, sample_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = tuple(column.split()[0] for column in SAMPLE_SCHEMA.split(", "))


class History:
    """The samples of all runs with one output."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    def append(self, samples: list[Sample]) -> None:
        """Keep the samples of one moment."""
        from pyspark.sql import functions as F

        if not samples:
            return
        date = F.to_date(F.timestamp_millis("time_ms"))
        rows = sample_rows(self._spark, samples).withColumn("date", date).coalesce(1)
        rows.write.mode("append").partitionBy("date").parquet(self._path)

    def since(self, first_ms: int) -> DataFrame:
        """The samples from that time on."""
        from pyspark.sql import functions as F

        if not SparkFolder(self._spark, self._path).is_there():
            return self._spark.createDataFrame([], SAMPLE_SCHEMA)
        rows = self._spark.read.schema(f"{SAMPLE_SCHEMA}, date DATE").parquet(self._path)
        first_date = datetime.fromtimestamp(first_ms / 1000, UTC).date()
        return rows.where((F.col("date") >= F.lit(first_date)) & (F.col("time_ms") >= first_ms)).select(*COLUMNS)
