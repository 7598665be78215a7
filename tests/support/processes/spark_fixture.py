"""The one Spark session of a test run: a JVM takes longer to start than most tests run.

A module that wants it says `pytest_plugins = ["tests.support.processes.spark_fixture"]`. Without PySpark, Java or the
connector's jars the fixture fails with the line that `spark_jobs.common.connector` has for it; nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from typing import TYPE_CHECKING

import pytest

from spark_jobs.common.connector import spark_session
from tests.support.broker import Broker
from tests.support.processes.spark import quick_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JVM_STOP_TIMEOUT_S = 30


@pytest.fixture(scope="session")
def spark(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Depends on the broker so that it ends first: Spark keeps its producers, which would look for the broker."""
    directory = tmp_path_factory.mktemp("spark")
    with chdir(directory):  # Spark 4.0.0 makes a folder `artifacts` where it is started
        session = spark_session("tests", master="local[2]", conf=quick_conf(directory))
    gateway = session.sparkContext._gateway
    yield session
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(JVM_STOP_TIMEOUT_S)
