"""`compare_topics` against a real broker: the example of docs/spark.md, ranges, transactions, what is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from spark_jobs.common.job import JobError
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.compare_topics import main, pin
from spark_jobs.comparison.comparison import DIFFERENT_STATUS, EQUAL_STATUS, compare
from spark_jobs.comparison.options import parse_options
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.spark.pieces import MARKS, BackgroundProducer, Outgoing, SparkJob, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

PARTITIONS = 2
ORDERS = 3_000
KEYS = 200
BEGIN_MS = 1_700_000_000_000
END_TIMEOUT_S = 120
PAGE = REPOSITORY / "docs" / "spark.md"


def order(number: int) -> Outgoing:
    return Outgoing(
        key=b"customer %d" % (number % KEYS),
        value=b"order %d" % number,
        partition=number % PARTITIONS,
        headers=(("shop", b"%d" % (number % 3)),),
        timestamp_ms=BEGIN_MS + number,
    )


def copy_with_mistakes(orders: list[Outgoing]) -> Iterable[Outgoing]:
    """Lost: 500 and 501. Twice: 700, of the customer of 500. Changed: the value of 910, the header of 1120. Late:
    1330.
    """
    for number, record in enumerate(orders):
        if number in (500, 501, 1_330):
            continue
        if number == 910:
            record = Outgoing(**fields(record) | {"value": b"order 0"})
        if number == 1_120:
            record = Outgoing(**fields(record) | {"headers": (("shop", b"9"),)})
        yield record
        if number == 700:
            yield record
    yield orders[1_330]


def fields(record: Outgoing) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}


def example() -> tuple[list[str], list[str]]:
    """The arguments and the output of the example in the page."""
    section = PAGE.read_text().partition("## Comparing topics")[2].partition("\n## ")[0]
    command, output = re.findall(r"```\n(.*?)```", section, re.DOTALL)[:2]
    arguments = command.replace("\\\n", " ").split()
    return arguments[arguments.index("spark_jobs.compare_topics") + 1 :], output.splitlines()


def test_the_example_of_the_page_finds_each_planted_difference(broker: Broker, tmp_path: Path) -> None:
    orders = [order(number) for number in range(ORDERS)]
    admin = Admin(broker.bootstrap)
    for topic, records in (("orders", orders), ("orders.copy", copy_with_mistakes(orders))):
        admin.create_topic(topic, PARTITIONS, {"retention.ms": "-1"})
        send(broker.bootstrap, topic, records)
    arguments, expected = example()
    job = SparkJob("compare_topics", [*arguments, "--bootstrap-servers", broker.bootstrap], tmp_path)
    growing = BackgroundProducer(broker.bootstrap, "orders", PARTITIONS, per_second=100)
    job.process.start()
    job.process.wait_for_line_in_processor_time(rf"^{re.escape(broker.bootstrap)}: orders\.copy ", 60)
    growing.start()  # after the ends are pinned
    try:
        assert job.process.wait(END_TIMEOUT_S) == DIFFERENT_STATUS, job.process.log_text()
    finally:
        growing.stop()
        admin.delete_topic("orders")
        admin.delete_topic("orders.copy")

    printed = [
        line.replace(broker.bootstrap, "127.0.0.1:9092")
        for line in job.process.log_text().splitlines()
        if " tasks" not in line and "WARNING" not in line
    ]
    assert printed == expected
    written = [
        json.loads(line)
        for file in (tmp_path / "differences").glob("part-*.json")
        for line in file.read_text().splitlines()
    ]
    found = [(row["kind"], row.get("fields"), row.get("offset"), row.get("other_offset")) for row in written]
    assert sorted(found, key=repr) == [
        ("changed", ["headers"], 560, 560),
        ("changed", ["value"], 455, 455),
        ("extra", None, None, 350),
        ("missing", None, 250, None),
        ("missing", None, 250, None),
        ("reordered", None, 665, 1499),
    ]
    late = next(row for row in written if row["kind"] == "reordered")
    assert late["timestamp"] == "2023-11-14T22:13:21.330Z"
    assert (late["topic"], late["other_topic"]) == ("orders", "orders.copy")


Run = Callable[..., int]


@pytest.fixture
def run(spark: SparkSession, broker: Broker) -> Run:
    """Runs a comparison of two topics in the session of the tests."""

    def run(topic: str, other: str, *arguments: str) -> int:
        where = ["--bootstrap-servers", broker.bootstrap, "--topic", topic, "--other-topic", other]
        options = parse_options([*where, *arguments])
        return compare(spark, options, *pin(options), StopRequest())

    return run


def test_records_of_transactions_and_ranges(
    run: Run, broker: Broker, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    topic, other = (Admin(broker.bootstrap).create_topic(unique("compared"), PARTITIONS) for _ in range(2))
    orders = [order(number) for number in range(20)]
    send(broker.bootstrap, other, orders)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": unique("compared")})
    producer.init_transactions()
    producer.begin_transaction()
    for record in orders[:10]:
        produce(producer, topic, record)
    producer.commit_transaction()
    producer.begin_transaction()
    produce(producer, topic, orders[0])
    producer.flush()
    producer.abort_transaction()
    send(broker.bootstrap, topic, orders[10:])

    assert run(topic, other, "--read-committed") == EQUAL_STATUS
    assert capsys.readouterr().out.splitlines()[-1] == "equal"
    assert run(topic, other) == DIFFERENT_STATUS
    assert "different: 1 missing" in capsys.readouterr().out.splitlines()
    # By offset, each commit and abort has shifted the records behind it.
    assert run(topic, other, "--match", "offset", "--read-committed", "--show", "0") == DIFFERENT_STATUS
    # Half of each, by offsets here and by time there.
    capsys.readouterr()
    ends = json.dumps({topic: {"0": 5, "1": 5}})
    others = json.dumps({other: {"0": 5, "1": 5}})
    assert run(topic, other, "--ending-offsets", ends, "--other-ending-offsets", others) == EQUAL_STATUS
    late = ["--starting-timestamp", str(BEGIN_MS + 10), "--ending-timestamp", str(BEGIN_MS + 15)]
    assert run(topic, other, *late, "--match", "hash") == EQUAL_STATUS
    row = next(line.split() for line in capsys.readouterr().out.splitlines()[-4:] if line.startswith(topic))
    assert row == [topic, other, "5", "5", "5", "0", "0", "0", "0"]


def produce(producer: confluent_kafka.Producer, topic: str, record: Outgoing) -> None:
    producer.produce(
        topic,
        record.value,
        record.key,
        partition=record.partition,
        headers=list(record.headers),
        timestamp=record.timestamp_ms,
    )


def test_what_is_not_there_is_one_line_and_status_1(
    run: Run, broker: Broker, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    topic, other, gone = (unique("compared") for _ in range(3))
    for name in (topic, other):
        Admin(broker.bootstrap).create_topic(name)
    here = ["--bootstrap-servers", broker.bootstrap]
    assert main([*here, "--topic", topic, "--other-topic", gone]) == 1
    error = f"there is no topic {gone} on {broker.bootstrap}: create it first, or check the name"
    assert capsys.readouterr().err == f"compare_topics: error: {error}\n"
    assert main([*here, "--topic", topic, "--other-bootstrap-servers", "127.0.0.1:1"]) == 1
    error = "compare_topics: error: no broker can be reached (127.0.0.1:1: Connection refused)\n"
    assert capsys.readouterr().err == error
    assert main([*here, "--topic", topic, "--other-topic", other, "--dry-run"]) == 0
    lines = [f"{broker.bootstrap}: {topic} 0:0-0", f"{broker.bootstrap}: {other} 0:0-0"]
    assert capsys.readouterr().out.splitlines() == lines
    (tmp_path / "part-0.parquet").write_bytes(b"of another job")
    with pytest.raises(JobError, match=r"is there already: name a new folder$"):
        run(topic, other, "--output", str(tmp_path))
