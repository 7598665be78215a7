"""The one Spark session of a test run: a JVM takes longer to start than most tests run.

A module that wants it says `pytest_plugins = ["tests.support.spark_fixture"]`. Without PySpark, Java or the connector's
jars the fixture fails with the line that `spark_jobs.connector` has for it; nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from spark_jobs.connector import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("tests", master="local[2]", conf=CONF)
    yield session
    session.stop()
