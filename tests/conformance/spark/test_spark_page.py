"""The examples of docs/spark.md print what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.testing import Broker
from spark_jobs import archive_topic, restore_topic, validate_records
from spark_jobs.archive import archive_options, restore_options
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.validation import validation_options
from tests.support.admin import Admin
from tests.support.spark.page import PAGE, example_of, lines_of_page
from tests.support.spark.pieces import MARKS, Outgoing, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS[1:]

BEGIN_MS = int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()) * 1_000
KEEP_FOR_EVER = {"retention.ms": "-1"}
CLICKS = [
    *(b'{"user": "ann", "at": %d}' % number for number in range(4)),
    b"click",
    b'{"user": "bob", "at": "noon"}',
    b'{"user": "bob", "at": null}',
    b'{"at": 1}',
]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker whose topics have the names of the page."""
    with Broker() as broker:
        yield broker.bootstrap_servers


def test_archive_and_restore(
    spark: SparkSession, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Admin(bootstrap).create_topic("events", 3, KEEP_FOR_EVER)
    records = (Outgoing(value=b"%d" % n, partition=n % 3, timestamp_ms=BEGIN_MS + n * 1_000) for n in range(1_200))
    send(bootstrap, "events", records)

    example = example_of("archive_topic")
    archiving = archive_options.parse_options(example.arguments_in(tmp_path, bootstrap))
    archive_topic.check(archiving)
    archive_topic.archive(spark, archiving, StopRequest())
    assert lines_of_page(capsys.readouterr().out, tmp_path, bootstrap) == example.lines

    example = example_of("restore_topic")
    restoring = restore_options.parse_options(example.arguments_in(tmp_path, bootstrap))
    restore_topic.check(restoring)
    restore_topic.restore(spark, restoring, StopRequest())
    assert lines_of_page(capsys.readouterr().out, tmp_path, bootstrap) == example.lines


def test_validate(spark: SparkSession, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Admin(bootstrap).create_topic("clicks")
    send(bootstrap, "clicks", (Outgoing(value=value) for value in CLICKS))
    schema = re.search(r"With this `click.json`\n\n```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert schema is not None
    (tmp_path / "click.json").write_text(schema[1])

    example = example_of("validate_records")
    validating = validation_options.parse_options(example.arguments_in(tmp_path, bootstrap))
    validate_records.check(validating)
    validate_records.validate(spark, validating, StopRequest())
    assert lines_of_page(capsys.readouterr().out, tmp_path, bootstrap) == example.lines
    reasons = [
        dict(message.headers()).get("odradek.reason") for message in _read(bootstrap, "clicks-bad") if message.headers()
    ]
    assert b"value breaks /properties/at/type at $.at: 'noon' is not of type 'integer'" in reasons


def _read(bootstrap: str, topic: str) -> list:  # type: ignore[type-arg]
    import confluent_kafka

    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "page"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    messages = consumer.consume(4, 30)
    consumer.close()
    return messages
