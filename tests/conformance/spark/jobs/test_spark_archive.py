"""`archive_topic` against a real broker: its transform, its options, and that it survives being killed.

All but the runs that are killed share the session of the tests: a run is then a call.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_options import parse_options
from spark_jobs.archive.archive_rows import archive_rows
from spark_jobs.archive.parquet_output import OutputError
from spark_jobs.archive_topic import archive
from spark_jobs.common.streaming_run import StopRequest
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.killed_archive import PARTITIONS, Archive, check_kills
from tests.support.spark.pieces import MARKS, Outgoing, Sent, in_order, received, send
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

KILLS = 3
JOB_STOP_TIMEOUT_S = 30
KEEP_FOR_EVER = {"retention.ms": "-1"}


@pytest.fixture
def make_archive(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> Callable[..., tuple[Archive, str]]:
    def make(partitions: int = 1, config: dict[str, str] | None = None) -> tuple[Archive, str]:
        topic = Admin(broker.bootstrap).create_topic(unique("archived"), partitions, config)
        return Archive(spark, broker, topic, tmp_path), topic

    return make


def milliseconds(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * 1_000


def test_archive_keeps_every_column_and_puts_records_under_their_date(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    run, topic = make_archive(2, KEEP_FOR_EVER)
    before, after = milliseconds(2024, 2, 28, 23, 59, 59), milliseconds(2024, 2, 29)
    sent = send(
        broker.bootstrap,
        topic,
        [
            Outgoing(value=b"\xff\x00", key=b"\xfe", timestamp_ms=before, headers=(("h", b"1"), ("h", None))),
            Outgoing(value=None, partition=1, timestamp_ms=after),
        ],
    )

    run.run()

    assert received(run.read()) == in_order(sent)
    assert {path.name for path in run.output.glob("date=*")} == {"date=2024-02-28", "date=2024-02-29"}
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "date"]
    assert run.read().columns == columns
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("batch 0: 2 records, ")
    assert lines[1].endswith(f"up to {topic} 0:1 1:1, lag 0")
    assert lines[2] == "done: 2 records in 1 batch"


def test_archive_goes_on_from_its_checkpoint_with_batches_of_bounded_size(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    run, topic = make_archive()
    sent: list[Sent] = []
    batches: list[str] = []
    for start in (0, 100):
        sent += send(broker.bootstrap, topic, (Outgoing(value=b"%d" % number) for number in range(start, start + 100)))
        run.run("--dry-run")
        dry = ["dry run, nothing was written: 100 offsets to archive", f"{topic}:0: offsets {start} to {start + 99}"]
        assert capsys.readouterr().out.splitlines()[::-1] == dry
        run.run("--max-offsets-per-trigger", "40", "--compression", "zstd", "--no-include-headers")
        batches += [line for line in capsys.readouterr().out.splitlines() if line.startswith("batch")]

    assert received(run.read()) == sent
    assert "headers" not in run.read().columns
    assert all(name.endswith(".zstd.parquet") for name in run.files())
    assert [line.partition(",")[0] for line in batches] == [
        *("batch 0: 40 records", "batch 1: 40 records", "batch 2: 20 records"),
        *("batch 3: 40 records", "batch 4: 40 records", "batch 5: 20 records"),
    ]


def test_archive_of_json_keeps_what_does_not_parse(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, tmp_path: Path
) -> None:
    run, topic = make_archive()
    values = [b'{"id": 1, "tags": ["a"]}', b"no json", b'{"id": 2}', None]
    send(broker.bootstrap, topic, (Outgoing(key=b"k", value=value) for value in values))
    schema = tmp_path / "schema.sql"
    schema.write_text("id BIGINT, tags ARRAY<STRING>\n")

    run.run("--value-format", "json", "--schema", str(schema), "--key-format", "string", "--partition-by", "topic,date")

    rows = run.read().orderBy("offset").select("key", "value", "data.id", "data.tags", "topic").collect()
    assert [tuple(row) for row in rows] == [
        ("k", '{"id": 1, "tags": ["a"]}', 1, ["a"], topic),
        ("k", "no json", None, None, topic),
        ("k", '{"id": 2}', 2, None, topic),
        ("k", None, None, None, topic),
    ]


def test_archive_begins_where_it_is_told(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, tmp_path: Path
) -> None:
    run, topic = make_archive(2, KEEP_FOR_EVER)
    begin = milliseconds(2024, 1, 1)
    sent = send(
        broker.bootstrap,
        topic,
        (Outgoing(value=b"%d" % n, partition=n % 2, timestamp_ms=begin + n * 60_000) for n in range(20)),
    )

    run.run("--starting-timestamp", "2024-01-01T01:10:00", "--timezone", "Europe/Prague")
    assert received(run.read()) == in_order(record for record in sent if record.offset >= 5)

    run.output, run.checkpoint = tmp_path / "archive2", tmp_path / "checkpoint2"
    offsets = json.dumps({topic: {"0": 9, "1": -2}})
    where = ["--output", str(run.output), "--checkpoint", str(run.checkpoint)]
    run.run(*where, "--starting-offsets", offsets, "--consumer-option", "isolation.level=read_committed")
    expected = [record for record in sent if record.partition == 1 or record.offset == 9]
    assert received(run.read()) == in_order(expected)


def test_an_output_is_refused_with_a_checkpoint_that_is_not_its_own(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, tmp_path: Path
) -> None:
    run, topic = make_archive()
    send(broker.bootstrap, topic, [Outgoing(value=b"1")])
    run.run()

    with pytest.raises(OutputError, match=r"written with another checkpoint"):
        run.run("--checkpoint", str(tmp_path / "new-checkpoint"))
    (tmp_path / "foreign" / "date=2024-01-01").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"files that no such job wrote"):
        run.run("--output", str(tmp_path / "foreign"), "--checkpoint", str(tmp_path / "new-checkpoint"))


def test_files_of_a_run_that_died_are_removed_and_those_of_batches_kept(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker
) -> None:
    run, topic = make_archive()
    send(broker.bootstrap, topic, [Outgoing(value=b"1")])
    run.run()
    committed = run.files()
    # As if the run had died in batch 1: planned, one file written, not listed.
    (run.checkpoint / "offsets" / "1").write_bytes(
        (run.checkpoint / "offsets" / "0").read_bytes().replace(b":1}", b":2}")
    )
    send(broker.bootstrap, topic, [Outgoing(value=b"2")])
    left_behind = Path(committed[0]).with_name("part-00000-left-behind.c000.snappy.parquet")
    left_behind.write_bytes(Path(committed[0]).read_bytes())

    run.run()

    assert not left_behind.exists()
    assert set(committed) < set(run.files())
    assert [record.value for record in received(run.spark.read.parquet(*run.files()))] == [b"1", b"2"]


def test_a_run_that_is_asked_to_stop_ends(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    run, topic = make_archive()
    sent = send(broker.bootstrap, topic, [Outgoing(value=b"1")])
    stop = StopRequest()
    options = parse_options([*run.arguments, "--trigger", "10 minutes"])
    thread = threading.Thread(target=archive, args=(run.spark, options, stop))
    thread.start()
    output: list[str] = []

    def printed() -> str:
        output.append(capsys.readouterr().out)
        return "".join(output)

    eventually(printed, accept=lambda text: "batch 0: 1 records" in text, timeout_s=60)
    stop.requested = True
    thread.join(JOB_STOP_TIMEOUT_S)

    assert not thread.is_alive()
    assert "stopped: 1 records in 1 batch" in printed()
    assert received(run.read()) == sent


@pytest.mark.parametrize(
    ("timezone", "expected"), [("UTC", (date(2024, 3, 30), 23)), ("Europe/Prague", (date(2024, 3, 31), 0))]
)
def test_date_and_hour_are_those_of_the_time_zone(
    spark: SparkSession, timezone: str, expected: tuple[date, int]
) -> None:
    records = spark.sql("SELECT TIMESTAMP '2024-03-30 23:30:00' AS timestamp")

    rows = archive_rows(records, partition_by=("date", "hour"), timezone=timezone).select("date", "hour").collect()

    assert [tuple(row) for row in rows] == [expected]


def test_archive_that_is_killed_has_every_record_once(
    make_archive: Callable[..., tuple[Archive, str]], broker: Broker, tmp_path: Path
) -> None:
    run, topic = make_archive(PARTITIONS)
    check_kills(run, broker, topic, tmp_path, kills=KILLS, seed=random.randrange(1_000_000))
