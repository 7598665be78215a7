"""The example of `consumer_lag` in docs/spark.md prints what the page says."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from odradek.testing import Broker
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.lag.lag_options import parse_options
from spark_jobs.lag.lag_run import check, consumer_lag
from spark_jobs.lag.offset_rows import READ_INTERNAL_TOPICS
from tests.support.admin import Admin
from tests.support.spark.page import example_of, lines_of_page
from tests.support.spark.pieces import MARKS, Outgoing, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS[1:]

RECORDS = 500
STALLED_S = 4
"""Longer than `--stalled-after` of the example and one of its estimates."""
RATE = re.compile(r"\d+\.\d ")


@pytest.fixture
def broker_of_page() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def commit(bootstrap: str, group: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition("orders", partition, offset) for partition, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def shown(lines: list[str]) -> list[str]:
    """The lines, without rates: these differ from run to run."""
    return [RATE.sub("N.N ", line) for line in lines]


def test_lag(spark: SparkSession, broker_of_page: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap = broker_of_page.bootstrap_servers
    Admin(bootstrap).create_topic("orders", 2)
    send(bootstrap, "orders", (Outgoing(value=b"%d" % n, partition=n % 2) for n in range(2 * RECORDS)))
    commit(bootstrap, "billing", 300, 500)
    commit(bootstrap, "reports", 500, 500)
    threading.Event().wait(STALLED_S)

    example = example_of("consumer_lag")
    options = parse_options(example.arguments_in(tmp_path, bootstrap))
    check(options)
    spark.conf.set(READ_INTERNAL_TOPICS, "true")
    try:
        consumer_lag(spark, options, StopRequest())
    finally:
        spark.conf.unset(READ_INTERNAL_TOPICS)
    assert shown(lines_of_page(capsys.readouterr().out, tmp_path, bootstrap)) == shown(example.lines)
