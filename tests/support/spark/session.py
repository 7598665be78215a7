"""The one Spark session of a test run: a JVM takes longer to start than most tests run.

A module that wants it says `pytest_plugins = ["tests.support.spark.session"]`. Without PySpark, Java or the
connector's jars the fixture fails with the line that `spark_jobs.common.connector` has for it; nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Broker
from tests.support.spark.pieces import local_session, quick_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Depends on the broker so that it ends first: Spark keeps its producers, which would look for the broker."""
    directory = tmp_path_factory.mktemp("spark")
    with local_session("tests", directory, quick_conf(directory)) as session:
        yield session
