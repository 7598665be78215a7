"""`archive_topic` is killed fifty times at random moments, in and between batches, and has every record once.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices, ODRADEK_SOAK_KILLS shortens the run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.admin import Admin
from tests.support.loads.killed_archive import PARTITIONS, Archive, check_kills
from tests.support.processes.odradek_process import OdradekBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings(r"ignore:unclosed <socket\.socket:ResourceWarning")]

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "50"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    process = OdradekBroker(tmp_path_factory.mktemp("broker"), {"log.retention.ms": "-1"})
    process.start()
    yield process
    process.close()


def test_every_record_is_archived_once(spark: SparkSession, broker: OdradekBroker, tmp_path: Path) -> None:
    topic = Admin(broker.bootstrap).create_topic("archived", PARTITIONS)
    check_kills(Archive(spark, broker, topic, tmp_path), broker, topic, tmp_path, kills=KILLS, seed=SEED)
