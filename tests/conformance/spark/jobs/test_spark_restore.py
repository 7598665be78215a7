"""`restore_topic` against a real broker: what it restores, where to, and that it survives being killed."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from py4j.protocol import Py4JJavaError

from odradek.protocol.api import ApiKey
from spark_jobs.archive.archive_options import parse_options as archive_options
from spark_jobs.archive.restore_options import parse_options
from spark_jobs.archive.restore_plan import Place
from spark_jobs.archive.restore_writer import ArchivedRecord, Progress, TargetWriter, WriterSettings, producer_config
from spark_jobs.archive_topic import archive
from spark_jobs.common.job import JobError, message_of, reason
from spark_jobs.common.source_position import SOURCE_HEADER, SourcePosition
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.restore_topic import main, progress_before, restore
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.spark.pieces import MARKS, Outgoing, Sent, SparkJob, in_order, send
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

PARTITIONS = 3
RECORDS = 12_000
KILLED_AT = 600
"""Records in the target: the run has then done a twentieth of its work."""
LONG_AGO_MS = 1_600_000_000_000
JOB_START_LIMIT_S = 60
JOB_STOP_TIMEOUT_S = 60
READ_TIMEOUT_S = 30.0
MAX_TRANSACTION_MS = 900_000
"""Apache's `transaction.max.timeout.ms`: longer than a restore waits."""

Run = Callable[..., None]


@dataclass
class Restorable:
    """A topic, what was sent to it, and its archive."""

    topic: str
    sent: list[Sent]
    folder: Path


@pytest.fixture(scope="module")
def source(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Restorable:
    """Three partitions, with null and empty keys and values, headers, and timestamps of long ago."""
    directory = tmp_path_factory.mktemp("restore")
    topic = Admin(broker.bootstrap).create_topic("to-restore", PARTITIONS)
    odd = [
        Outgoing(
            value=None, key=b"\xff", partition=0, timestamp_ms=LONG_AGO_MS + 9, headers=(("h", b"1"), ("h", None))
        ),
        Outgoing(value=b"", key=b"", partition=0, timestamp_ms=LONG_AGO_MS),
        Outgoing(value=b"no key", partition=2, timestamp_ms=1, headers=(("empty", b""),)),
    ]
    many = (
        Outgoing(value=b"%d" % n, key=b"k%d" % (n % 9), partition=n % PARTITIONS, timestamp_ms=LONG_AGO_MS + n)
        for n in range(RECORDS)
    )
    sent = send(broker.bootstrap, topic, [*odd, *many])
    where = ["--output", str(directory / "archive"), "--checkpoint", str(directory / "checkpoint")]
    options = ["--bootstrap-servers", broker.bootstrap, "--topic", topic, *where, "--available-now"]
    archive(spark, archive_options(options), StopRequest())
    return Restorable(topic, in_order(sent), directory / "archive")


@pytest.fixture
def arguments(broker: Broker, source: Restorable) -> list[str]:
    return ["--bootstrap-servers", broker.bootstrap, "--archive", str(source.folder)]


@pytest.fixture
def run(spark: SparkSession, arguments: list[str]) -> Run:
    def call(*more: str) -> None:
        restore(spark, parse_options([*arguments, *more]), StopRequest())

    return call


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Sent]:
    """All records of a topic, in order, without Spark: aborted transactions and markers leave gaps in the offsets."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    partitions = range(len(consumer.list_topics(topic, READ_TIMEOUT_S).topics[topic].partitions))
    consumer.assign(
        [confluent_kafka.TopicPartition(topic, each, confluent_kafka.OFFSET_BEGINNING) for each in partitions]
    )
    records, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(READ_TIMEOUT_S)
        assert message is not None, f"{topic} cannot be read"
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
            ended += 1
            continue
        place = {"topic": topic, "partition": message.partition(), "offset": message.offset()}
        headers = tuple(message.headers() or ())
        content = {"key": message.key(), "value": message.value(), "headers": headers}
        records.append(Sent(**place, **content, timestamp_ms=message.timestamp()[1]))
    consumer.close()
    return in_order(records)


def restored(records: Iterable[Sent]) -> list[Sent]:
    """The records as they were in the archived topic, by their last header."""
    sources = []
    for record in records:
        *headers, (name, position) = record.headers
        assert name == SOURCE_HEADER
        assert position is not None
        topic, partition, offset = position.decode().split(":")
        assert int(partition) == record.partition
        sources.append(
            replace(record, topic=topic, partition=int(partition), offset=int(offset), headers=tuple(headers))
        )
    return sources


def count(bootstrap: str, topic: str) -> int:
    """The offsets that the partitions of a topic have reached; 0 without the topic."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    try:
        partitions = consumer.list_topics(timeout=READ_TIMEOUT_S).topics
        if topic not in partitions:
            return 0
        places = [confluent_kafka.TopicPartition(topic, each) for each in partitions[topic].partitions]
        return sum(consumer.get_watermark_offsets(place, READ_TIMEOUT_S)[1] for place in places)
    finally:
        consumer.close()


def test_a_restored_topic_equals_the_archived_one(
    run: Run, source: Restorable, broker: Broker, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    copy = unique("copy")
    mapped = ("--map-topic", f"{source.topic}={copy}", "--create-topic", "--group", copy)

    run(*mapped, "--dry-run")
    assert "dry run: nothing was written" in capsys.readouterr().out.splitlines()
    assert copy not in Admin(broker.bootstrap).topics()

    run(*mapped)
    assert f"done: {len(source.sent)} records restored, 0 were there before" in capsys.readouterr().out.splitlines()
    records = read(broker.bootstrap, copy)
    assert restored(records) == source.sent
    assert [record.offset for record in records] == [record.offset for record in source.sent]

    run(*mapped)
    assert f"done: 0 records restored, {len(source.sent)} were there before" in capsys.readouterr().out.splitlines()
    assert read(broker.bootstrap, copy) == records


def test_partitions_are_mapped_and_records_chosen(
    run: Run, source: Restorable, broker: Broker, unique: Callable[[str], str]
) -> None:
    copy = unique("mapped")
    mapping = (
        "--map-topic",
        f"{source.topic}={copy}",
        "--map-partition",
        "0=1",
        "--map-partition",
        f"{source.topic}:2=1",
    )
    times = ("--starting-timestamp", str(LONG_AGO_MS + 9), "--ending-timestamp", str(LONG_AGO_MS + 15))
    created = ("--create-topic", "--partitions", "5", "--topic-config", "retention.ms=-1", "--compression", "lz4")
    run(*mapping, *times, *created, "--no-source-header", "--exactly-once", "--group", copy)

    assert Admin(broker.bootstrap).topics()[copy] == 5
    chosen = [each for each in source.sent if LONG_AGO_MS + 9 <= each.timestamp_ms < LONG_AGO_MS + 15]
    found = [(each.key, each.value, each.timestamp_ms, each.headers) for each in read(broker.bootstrap, copy)]
    by_target = sorted(chosen, key=lambda each: (1, each.partition, each.offset))
    assert found == [(each.key, each.value, each.timestamp_ms, each.headers) for each in by_target]


def test_a_part_by_time_and_then_the_rest_leaves_nothing_out(
    run: Run, source: Restorable, broker: Broker, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    copy = unique("parts")
    mapped = ("--map-topic", f"{source.topic}={copy}", "--create-topic", "--exactly-once")
    middle_ms = LONG_AGO_MS + RECORDS // 2
    late, early = ("--starting-timestamp", str(middle_ms)), ("--ending-timestamp", str(middle_ms))
    of_late = [each for each in source.sent if each.timestamp_ms >= middle_ms]
    of_early = [each for each in source.sent if each.timestamp_ms < middle_ms]

    run(*mapped, *late, "--group", copy)
    assert restored(read(broker.bootstrap, copy)) == of_late
    for times in ((), early):
        with pytest.raises(
            JobError, match=rf"the group {copy} holds the progress .* \(--starting-timestamp {middle_ms}\)"
        ):
            run(*mapped, *times, "--group", copy)
    assert restored(read(broker.bootstrap, copy)) == of_late

    run(*mapped, *late, "--group", copy)
    run(*mapped, *early, "--group", f"{copy}-early")
    out = capsys.readouterr().out.splitlines()
    assert f"done: 0 records restored, {len(of_late)} were there before" in out
    assert f"done: {len(of_early)} records restored, 0 were there before" in out
    places = [(each.partition, each.offset) for each in restored(read(broker.bootstrap, copy))]
    assert sorted(places) == [(each.partition, each.offset) for each in source.sent]


SLOW_BYTES_PER_S = 20_000
"""The broker lets a slow client write ten times as much at once, a sixth of all."""


def alter_quota(broker: Broker, client_id: str, **change: object) -> None:
    """`change`: the new value in bytes a second, or whether to remove it."""
    entity = [{"entity_type": "client-id", "entity_name": client_id}]
    entry = {"entity": entity, "ops": [{"key": "producer_byte_rate", **change}]}
    with RawClient(broker.host, broker.port) as client:
        (altered,) = client.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry]), 1).entries  # type: ignore[attr-defined]
        assert altered.error_code == 0, altered.error_message


@pytest.fixture
def slow(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Iterator[list[str]]:
    """Options for a run that takes half a minute, so that it is in the middle when it is cut off."""
    client_id = unique("slow")
    alter_quota(broker, client_id, value=float(SLOW_BYTES_PER_S))
    config = tmp_path / "slow.properties"
    config.write_text(f"client.id={client_id}\n")
    yield ["--command-config", str(config)]
    alter_quota(broker, client_id, remove=True)


@pytest.mark.parametrize(
    ("mode", "end", "batch_records"),
    [
        ("--exactly-once", signal.SIGKILL, 40),
        ("--source-header", signal.SIGKILL, 40),
        ("--source-header", signal.SIGTERM, 1),
    ],
)
def test_a_restore_that_is_cut_off_goes_on(
    mode: str,
    end: signal.Signals,
    batch_records: int,
    run: Run,
    arguments: list[str],
    slow: list[str],
    source: Restorable,
    broker: Broker,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    copy = unique("killed")
    more = ["--map-topic", f"{source.topic}={copy}", "--create-topic", "--group", copy, mode]
    more += ["--batch-records", str(batch_records)]
    # After SIGTERM it waits until its tasks stand still, as those of a slow client do while they write.
    pace = slow if end == signal.SIGKILL else []
    job = SparkJob("restore_topic", [*arguments, *more, *pace, "--master", "local[2]"], tmp_path)
    job.process.start()
    job.process.wait_for_line_in_processor_time("^restoring ", JOB_START_LIMIT_S)
    eventually(lambda: count(broker.bootstrap, copy), accept=lambda end: end > KILLED_AT, timeout_s=120)
    if end == signal.SIGKILL:
        job.kill_tree()
    else:
        assert job.process.terminate(JOB_STOP_TIMEOUT_S) == 0
        assert job.process.log_text().splitlines()[-1].startswith("stopped: restored up to to-restore:")
    before = count(broker.bootstrap, copy)
    # After SIGTERM, tasks write the rows that they have received, which may be all.
    assert before < len(source.sent) or end == signal.SIGTERM, "the run was killed in the middle"

    run(*more)

    records = read(broker.bootstrap, copy)
    if mode == "--exactly-once":
        assert restored(records) == source.sent
        return
    once = {}
    for record in restored(records):
        once.setdefault((record.partition, record.offset), record)
    assert list(once.values()) == source.sent, "the first of each position: all of them, in order"
    # A batch of each partition, also after SIGTERM if a task has stood still for a second between batch and commit.
    assert len(records) - len(once) <= PARTITIONS * batch_records


def test_a_restore_that_is_asked_to_stop_ends_and_goes_on(
    spark: SparkSession,
    run: Run,
    arguments: list[str],
    slow: list[str],
    source: Restorable,
    broker: Broker,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = unique("stopped")
    more = ["--map-topic", f"{source.topic}={copy}", "--create-topic", "--group", copy, "--exactly-once"]
    options = parse_options([*arguments, *more, *slow, "--batch-records", "20"])
    stop = StopRequest()
    thread = threading.Thread(target=restore, args=(spark, options, stop))
    thread.start()
    eventually(lambda: count(broker.bootstrap, copy), accept=lambda end: end > KILLED_AT, timeout_s=120)
    stop.requested = True
    thread.join(JOB_STOP_TIMEOUT_S)

    assert not thread.is_alive()
    assert capsys.readouterr().out.splitlines()[-1].startswith("stopped: restored up to to-restore:")
    stopped = restored(read(broker.bootstrap, copy))
    assert KILLED_AT / 2 < len(stopped) < len(source.sent), "it was stopped in the middle"
    run(*more)
    assert restored(read(broker.bootstrap, copy)) == source.sent


def test_an_older_writer_of_a_restore_is_fenced(broker: Broker, unique: Callable[[str], str]) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("fenced"))
    settings = WriterSettings(
        client={"bootstrap.servers": broker.bootstrap},
        group=topic,
        exactly_once=True,
        batch_records=2,
        has_source_header=False,
    )

    def record(offset: int) -> ArchivedRecord:
        return ArchivedRecord(Place(topic, 0), SourcePosition("a", 0, offset), LONG_AGO_MS, None, b"%d" % offset, [])

    progress = Progress(settings)
    older = TargetWriter(settings, progress, Place(topic, 0))
    for offset in (0, 1, 2):  # the third is in an open transaction
        older.write(record(offset))
    newer = TargetWriter(settings, progress, Place(topic, 0))
    with pytest.raises(confluent_kafka.KafkaException, match=r"fenced|Local: Fatal error"):
        older.close()
    for offset in (0, 1, 2):
        newer.write(record(offset))
    written = newer.close()
    older.abandon()
    progress.close()

    assert (written.restored, written.skipped) == (1, 2)
    assert [each.value for each in read(broker.bootstrap, topic)] == [b"0", b"1", b"2"]


def test_a_commit_that_a_killed_run_left_undecided_is_aborted(broker: Broker, unique: Callable[[str], str]) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("undecided"))
    arguments = ["--bootstrap-servers", broker.bootstrap, "--archive", "x", "--group", topic, "--exactly-once"]
    options, target = parse_options(arguments), Place(topic, 0)
    config = producer_config(options.writer_settings(), target)
    killed = confluent_kafka.Producer(config | {"transaction.timeout.ms": MAX_TRANSACTION_MS})
    killed.init_transactions(READ_TIMEOUT_S)
    killed.begin_transaction()
    killed.produce(topic, b"lost", partition=0)
    with closing(Progress(options.writer_settings())) as progress:
        offsets = [progress.committed(target, {Place("a", 0): 1})]
        killed.send_offsets_to_transaction(offsets, progress.group_metadata(), READ_TIMEOUT_S)
    killed.flush(READ_TIMEOUT_S)

    assert progress_before(options, [target]) == {target: {}}
    assert read(broker.bootstrap, topic) == []


def test_what_cannot_be_restored_is_refused_with_one_line(
    run: Run, source: Restorable, broker: Broker, unique: Callable[[str], str], tmp_path: Path, spark: SparkSession
) -> None:
    with pytest.raises(JobError, match=r"the topic nowhere is not there: create it, or use --create-topic"):
        run("--map-topic", f"{source.topic}=nowhere")
    small = Admin(broker.bootstrap).create_topic(unique("small"))
    with pytest.raises(JobError, match=rf"the topic {small} has 1 partitions and the restore needs 3"):
        run("--map-topic", f"{source.topic}={small}")
    with pytest.raises(JobError, match=r"has no records of other"):
        run("--topic", "other")
    tiny = f"{source.topic}={unique('tiny')}"
    create = ("--create-topic", "--topic-config", "max.message.bytes=80")
    for mode in ("--exactly-once", "--source-header"):
        with pytest.raises(Py4JJavaError) as failed:
            run("--map-topic", tiny, *create, mode)
        line = reason(message_of(failed.value))
        assert re.fullmatch(r"records for tiny\S+:\d were not written: Broker: Message size too large", line)
    spark.range(1).write.parquet(str(tmp_path / "else"))
    with pytest.raises(JobError, match=r"is no archive of archive_topic: it has no column key, value, topic"):
        run("--archive", str(tmp_path / "else"))


def test_the_records_of_two_topics_of_one_name_are_not_merged(
    spark: SparkSession, run: Run, source: Restorable, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """The archive of a topic that was created again, and went on archiving with --no-fail-on-data-loss."""
    from pyspark.sql import functions as F

    mixed = str(tmp_path / "mixed")
    rows = spark.read.parquet(str(source.folder)).select("key", "value", "topic", "partition", "offset", "timestamp")
    rows.write.parquet(mixed)
    doubled = rows.where((F.col("partition") == 1) & (F.col("offset") < 10))
    doubled.write.mode("append").parquet(mixed)
    copy = unique("newer")
    more = ("--archive", mixed, "--map-topic", f"{source.topic}={copy}", "--create-topic", "--group", copy)
    run(*more, "--dry-run")  # rows of a file that is there twice: they are equal

    later = doubled.withColumn("timestamp", F.col("timestamp") + F.expr("INTERVAL 1 DAY"))
    later.write.mode("append").parquet(mixed)
    with pytest.raises(JobError, match=rf"same offset, 10 of them in {source.topic}:1 \(offsets 0 to 9\): the topic"):
        run(*more)
    assert copy not in Admin(broker.bootstrap).topics()
    run(*more, "--starting-timestamp", str(LONG_AGO_MS + RECORDS))
    assert [each.offset for each in restored(read(broker.bootstrap, copy))] == list(range(10))


def test_a_broker_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(tmp_path / "none"), "--bootstrap-servers", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == f"restore_topic: error: there is no archive {tmp_path / 'none'}\n"
    assert main(["--archive", str(tmp_path), "--bootstrap-servers", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "restore_topic: error: no broker can be reached (127.0.0.1:1: Connection refused)\n"
    )
