"""`validate_records` against a real broker: every seeded bad record is found, and none is missing after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from spark_jobs.common.job import JobError, message_of, reason
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.validate_records import check, validate
from spark_jobs.validation.validation_options import parse_options
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.spark.pieces import (
    MARKS,
    BackgroundProducer,
    Outgoing,
    Sent,
    SparkJob,
    kafka_batch,
    received,
    send,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

PARTITIONS = 3
LONG_AGO_MS = 1_600_000_000_000
JOB_START_LIMIT_S = 60
JOB_END_TIMEOUT_S = 60
SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
BAD = {
    b"no json": "value is not JSON",
    b"\xff\xfe": "value is not UTF-8",
    b"{}": "value breaks /required: 'id' is a required property",
    b'{"id": "1"}': "value breaks /properties/id/type",
    None: "value is null",
}


class Validation:
    """Three topics, a checkpoint, and the runs of the job on them."""

    def __init__(self, spark: SparkSession, broker: Broker, name: str, directory: Path) -> None:
        self.spark = spark
        self.bootstrap = broker.bootstrap
        self.topic, self.good, self.bad = name, f"{name}-good", f"{name}-bad"
        Admin(broker.bootstrap).create_topic(name, PARTITIONS)
        schema = directory / "schema.json"
        schema.write_text(json.dumps(SCHEMA))
        self.arguments = ["--bootstrap-servers", broker.bootstrap, "--topic", name, "--schema", str(schema)]
        self.arguments += ["--output-topic", self.good, "--dead-letter-topic", self.bad]
        self.arguments += ["--checkpoint", str(directory / "checkpoint"), "--create-topic"]

    def run(self, *more: str) -> None:
        """Validate what is there."""
        options = parse_options([*self.arguments, "--available-now", *more])
        check(options)
        validate(self.spark, options, StopRequest())

    def read(self, topic: str) -> list[Sent]:
        return received(kafka_batch(self.spark, self.bootstrap, subscribe=topic, includeHeaders="true").load())


@pytest.fixture
def validation(spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Validation:
    return Validation(spark, broker, unique("clicks"), tmp_path)


def position(record: Sent) -> bytes:
    return f"{record.topic}:{record.partition}:{record.offset}".encode()


def header(record: Sent, name: str) -> str:
    (value,) = (value for key, value in record.headers if key == name)
    assert value is not None
    return value.decode()


def test_good_records_go_on_and_bad_ones_get_their_reason(
    validation: Validation, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    values: list[bytes | None] = [b'{"id": %d}' % number for number in range(60)]
    values[7::10] = [*BAD, None]
    sent = send(
        broker.bootstrap,
        validation.topic,
        (
            Outgoing(value=value, key=b"k", partition=n % 3, headers=(("h", b"1"),), timestamp_ms=LONG_AGO_MS + n)
            for n, value in enumerate(values)
        ),
    )

    validation.run("--dry-run")
    assert "dry run, nothing was written: 54 good, 6 bad" in capsys.readouterr().out.splitlines()
    assert validation.good not in Admin(broker.bootstrap).topics()

    validation.run("--keep-partitions")

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"created {topic}: 3 partitions" for topic in (validation.good, validation.bad)]
    counts = ["  2 x value is null", *sorted(f"  1 x {kind}" for kind in BAD.values() if kind != "value is null")]
    assert lines[-6:] == ["done: 54 good, 6 bad", *counts]
    assert "  54 good, 6 bad" in lines
    good, bad = validation.read(validation.good), validation.read(validation.bad)
    by_position = {position(record): record for record in sent}
    for record in good + bad:
        source = by_position.pop(header(record, "odradek.source").encode())
        assert (record.key, record.value, record.headers[0]) == (source.key, source.value, ("h", b"1"))
        assert header(record, "odradek.timestamp") == str(source.timestamp_ms)
        assert (source.value in BAD) == (record.topic == validation.bad)
        if record.topic == validation.bad:
            assert header(record, "odradek.reason").startswith(BAD[source.value].partition(":")[0])
        else:
            assert record.partition == source.partition
    assert by_position == {}


def test_no_record_is_missing_after_a_kill(validation: Validation, broker: Broker, tmp_path: Path) -> None:
    topic = validation.topic
    bad = send(broker.bootstrap, topic, (Outgoing(value=b"bad %d" % n, partition=n % 3) for n in range(50)))
    check(parse_options([*validation.arguments]))
    arguments = [*validation.arguments, "--trigger", "0s", "--max-offsets-per-trigger", "200", "--master", "local[2]"]
    job = SparkJob("validate_records", arguments, tmp_path)
    producer = BackgroundProducer(broker.bootstrap, topic, PARTITIONS, per_second=200)
    producer.start()
    try:
        job.process.start()
        job.process.wait_for_line_in_processor_time(r"^batch 1: ", JOB_START_LIMIT_S)
        job.kill_tree()
    finally:
        sent = producer.stop()

    validation.run()

    found = {header(record, "odradek.source").encode() for record in validation.read(validation.bad)}
    assert found == {position(record) for record in [*bad, *sent]}, "what the producer sends is no JSON, either"


def test_records_that_the_sink_refuses_end_the_job_with_one_line(validation: Validation, broker: Broker) -> None:
    send(broker.bootstrap, validation.topic, [Outgoing(value=b'{"id": 1}')])
    with pytest.raises(StreamingQueryException) as failed:
        validation.run("--topic-config", "max.message.bytes=80")
    assert "RecordTooLargeException: The request included a message larger than" in reason(message_of(failed.value))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--topic", "nowhere"), r"^there is no topic nowhere on \S+: create it first, or check the name$"),
        (("--schema", "nowhere.json"), r"^--schema: nowhere.json cannot be read: No such file or directory$"),
        (("--bootstrap-servers", "127.0.0.1:1"), r"^no broker can be reached \(127.0.0.1:1: Connection refused\)$"),
    ],
)
def test_what_is_not_there_is_one_line(validation: Validation, more: tuple[str, ...], message: str) -> None:
    with pytest.raises(JobError, match=message):
        check(parse_options([*validation.arguments, *more]))
