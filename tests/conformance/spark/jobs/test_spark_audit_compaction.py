"""`audit_compaction` on directories that Odradek and Apache Kafka have compacted, with planted errors."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import Record
from spark_jobs.audit_compaction import SOUND_STATUS, WRONG_STATUS, audit, check_before, main
from spark_jobs.common.job import JobError
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.compaction.latest import findings, savings
from spark_jobs.compaction.options import parse_options
from tests.support.admin import ADMIN_TIMEOUT_S, Admin
from tests.support.broker import Broker
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.spark.pieces import MARKS, Outgoing, send
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS[1:]  # both kinds of broker are started here

SETTINGS = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}
TOPIC = "users"
KEYS = 20
ROUNDS = 10
BEGIN_MS = 1_700_000_000_000
LOST_KEY, STALE_KEY, CHANGED_KEY = b"user 3", b"user 5", b"user 7"
DELETED_KEY = b"user 11"
PAGE = REPOSITORY / "docs" / "spark.md"

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an audit in the session of the tests: status, and lines without the progress."""

    def run(*arguments: str) -> tuple[int, list[str]]:
        options = parse_options([*arguments, "--topic", TOPIC])
        check_before(options)
        capsys.readouterr()
        status = audit(spark, options, StopRequest())
        return status, [line for line in capsys.readouterr().out.splitlines() if " tasks" not in line]

    return run


@pytest.fixture(params=["odradek", "apache"])
def broker_of_kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    broker: OdradekBroker | ApacheBroker
    if request.param == "odradek":
        broker = OdradekBroker(tmp_path / "broker", SETTINGS)
    else:
        zookeeper: ZooKeeper = request.getfixturevalue("zookeeper")
        broker = ApacheBroker(tmp_path / "broker", zookeeper.new_chroot(), SETTINGS)
    broker.start()
    yield broker
    broker.close()


def fill(broker: Broker) -> None:
    """Ten values of each of twenty users, then the end of one of them. Nothing is compacted yet."""
    config = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "4000"}
    Admin(broker.bootstrap).create_topic(TOPIC, 1, config)
    records = [
        Outgoing(key=b"user %d" % key, value=b"%d " % round_number * 10, timestamp_ms=BEGIN_MS)
        for round_number in range(ROUNDS)
        for key in range(KEYS)
    ]
    records.insert(150, Outgoing(key=DELETED_KEY, value=None, timestamp_ms=BEGIN_MS))
    records = [each for number, each in enumerate(records) if number <= 150 or each.key != DELETED_KEY]
    # One record a batch: the segments are the same in every run.
    send(broker.bootstrap, TOPIC, records, **{"linger.ms": 0, "batch.num.messages": 1})


def compact(broker: Broker) -> None:
    """Let the broker compact all but the active segment, then stop it."""
    changes = [ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)]
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=changes)
    admin = Admin(broker.bootstrap)
    [future] = admin.client.incremental_alter_configs([resource]).values()
    future.result(ADMIN_TIMEOUT_S)
    active = max(int(path.stem) for path in (broker.log_dir / f"{TOPIC}-0").glob("*.log"))
    assert active > 0
    eventually(lambda: clean_below(broker), accept=lambda offset: offset == active, timeout_s=60)
    broker.stop()


def clean_below(broker: Broker) -> int:
    """How far the cleaner says it is."""
    path = broker.log_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(offset) for topic, _, offset in map(str.split, lines) if topic == TOPIC), 0)


def records_in(log_dir: Path) -> dict[str, list[Record]]:
    """The records of each segment."""
    return {
        path.name: [record for batch in batches(memoryview(path.read_bytes())) for record in batch.records()]
        for path in sorted((log_dir / f"{TOPIC}-0").glob("*.log"))
    }


def plant(before: Path, after: Path) -> dict[str, int]:
    """Write the segments in `after` anew, with three errors. Returns the offsets that the findings name."""
    old = [record for records in records_in(before).values() for record in records]
    segments = records_in(after)
    latest = {record.key: record.offset for records in segments.values() for record in records}
    older = [record for record in old if record.key == STALE_KEY and record.offset < latest[STALE_KEY]][-1]
    holding = max(name for name in segments if int(Path(name).stem) <= older.offset)
    for name, records in segments.items():
        kept = [record for record in records if record.key not in (LOST_KEY, STALE_KEY)]
        kept = [
            Record(record.offset, record.timestamp, record.key, b"other", ()) if record.key == CHANGED_KEY else record
            for record in kept
        ]
        if name == holding:
            kept = sorted([*kept, older], key=lambda record: record.offset)
        path = after / f"{TOPIC}-0" / name
        path.write_bytes(b"".join(bytes(build_batch([each], base_offset=each.offset)) for each in kept))
        for index in path.parent.glob(f"{path.stem}.*index"):
            index.unlink()
    return {
        "lost": latest[LOST_KEY],
        "stale": latest[STALE_KEY],
        "older": older.offset,
        "changed": latest[CHANGED_KEY],
    }


def example() -> list[str]:
    """The output of the second example in the page."""
    section = PAGE.read_text().partition("## Auditing compaction")[2].partition("\n## ")[0]
    return str(re.findall(r"```\n(.*?)```", section, re.DOTALL)[1]).splitlines()


def test_planted_errors_are_found_in_directories_of_both_brokers(
    broker_of_kind: Broker, run: Run, tmp_path: Path
) -> None:
    fill(broker_of_kind)
    log_dir, before, after = str(broker_of_kind.log_dir), tmp_path / "before", tmp_path / "after"
    shutil.copytree(log_dir, before)
    snapshot = str(tmp_path / "snapshot")
    status, uncompacted = run("--log-dirs", log_dir, "--save-snapshot", snapshot)  # beside the live broker
    assert (status, uncompacted[-1]) == (SOUND_STATUS, f"written: {snapshot}")

    compact(broker_of_kind)
    removed = sum(map(len, records_in(before).values())) - sum(map(len, records_in(Path(log_dir)).values()))
    row = uncompacted[1].split()
    assert row[0] == f"{TOPIC}-0"
    assert int(row[6]) == removed, uncompacted  # "removable now" is what compaction has removed
    unwritten = tmp_path / "unwritten"
    for earlier in (snapshot, str(before)):
        status, sound = run("--log-dirs", log_dir, "--before", earlier, "--save-snapshot", str(unwritten), "--dry-run")
        assert not unwritten.exists()
        assert (status, sound[-1].partition(":")[0]) == (SOUND_STATUS, "nothing is wrong")
        assert sound[1].split()[6] == "0"

    shutil.copytree(log_dir, after)
    planted = plant(before, after)
    found = str(tmp_path / "findings")
    status, wrong = run("--log-dirs", str(after), "--before", snapshot, "--output", found, "--output-format", "json")
    assert status == WRONG_STATUS
    assert f'lost      users-0 "user 3": its latest record was at offset {planted["lost"]}' in wrong
    moved = f"was at offset {planted['stale']}, and the latest is now at {planted['older']}"
    assert f'stale     users-0 "user 5": its latest record {moved}' in wrong
    assert f'changed   users-0 "user 7": the value at offset {planted["changed"]} is another one' in wrong
    assert wrong[-1] == f"wrong: 1 lost, 1 stale, 1 changed of {KEYS} keys"
    assert len([line for path in Path(found).glob("part-*") for line in path.read_text().splitlines()]) == 3
    assert [line.replace(found, "./findings") for line in wrong] == example()


def test_what_is_legitimate_and_what_is_not(spark: SparkSession) -> None:
    """Frames made by hand: what follows a snapshot rightly, and each kind of finding."""
    snapshot = (
        "topic STRING, partition INT, key BINARY, offset BIGINT, is_tombstone BOOLEAN, hash1 BIGINT, hash2 BIGINT"
    )
    before = [
        ("kept", 10, False, 1),
        ("rewritten", 11, False, 1),
        ("deleted later", 12, False, 1),
        ("tombstone that went", 13, True, 0),
        ("tombstone that stayed", 14, True, 0),
        ("lost", 15, False, 1),
        ("below the log start", 3, False, 1),
        ("stale", 16, False, 1),
        ("revived", 17, True, 0),
        ("changed", 18, False, 1),
        ("emptied", 19, False, 1),
        ("appeared later than its latest", 8, False, 1),
        ("last", 30, False, 1),
    ]
    after = [
        ("kept", 10, False, 1),
        ("rewritten", 31, False, 2),
        ("deleted later", 32, True, 0),
        ("tombstone that stayed", 14, True, 0),
        ("stale", 9, False, 3),
        ("revived", 7, False, 3),
        ("changed", 18, False, 4),
        ("emptied", 19, True, 1),
        ("appeared later than its latest", 20, False, 1),
        ("appeared", 21, False, 1),
        ("new", 33, False, 1),
        ("last", 30, False, 1),
    ]

    def rows(found: list[tuple[str, int, bool, int]]) -> list[tuple[object, ...]]:
        return [("t", 0, key.encode(), offset, deleted, value, value) for key, offset, deleted, value in found]

    starts = spark.createDataFrame([("t", 0, 5)], "topic STRING, partition INT, log_start BIGINT")
    wrong = findings(
        spark.createDataFrame(rows(before), snapshot), spark.createDataFrame(rows(after), snapshot), starts
    )
    assert {(row.kind, bytes(row.key).decode(), row.offset_before, row.offset_after) for row in wrong.collect()} == {
        ("lost", "lost", 15, None),
        ("stale", "stale", 16, 9),
        ("stale", "revived", 17, 7),
        ("changed", "changed", 18, 18),
        ("changed", "emptied", 19, 19),
        ("appeared", "appeared later than its latest", 8, 20),
        ("appeared", "appeared", None, 21),
    }


def test_what_could_be_removed_now_and_later(spark: SparkSession) -> None:
    schema = "topic STRING, partition INT, key BINARY, offset BIGINT, size BIGINT, is_tombstone BOOLEAN"
    # Offset 6 begins the active segment: a's record there supersedes the one at 3 when it has rolled.
    found = [("a", 0, 10), ("b", 1, 20), ("a", 3, 30), ("b", 5, 40), ("a", 6, 50), ("c", 7, 60), ("c", 8, 1)]
    rows = [("t", 0, key.encode(), offset, size, size == 1) for key, offset, size in found]
    rows += [("t", 1, b"a", 0, 5, False), ("t", 1, b"a", 1, 6, False)]
    active = spark.createDataFrame([("t", 0, 6), ("t", 1, 0)], "topic STRING, partition INT, active_base BIGINT")
    result = savings(spark.createDataFrame(rows, schema), active).orderBy("partition").collect()
    names = ("keys", "records", "bytes", "tombstones", "removable_now", "removable_now_bytes")
    assert [tuple(row[name] for name in names) for row in result] == [(3, 7, 211, 1, 2, 30), (1, 2, 11, 0, 0, 0)]
    assert [(row.removable_later, row.removable_later_bytes) for row in result] == [(4, 120), (1, 5)]


def test_what_is_not_there_is_one_line(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    broker: Broker,
    unique: Callable[[str], str],
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("audited"))
    here, gone = ["--log-dirs", str(broker.log_dir), "--topic"], str(tmp_path / "gone")
    for arguments, words in (
        (["--log-dirs", gone, "--topic", topic], gone),
        ([*here, "gone"], "topic gone is not in"),
        ([*here, topic, "--before", gone], f"--before: there is no folder {gone}"),
    ):
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert error.startswith("audit_compaction: error: ")
        assert words in error
        assert error.count("\n") == 1
    options = parse_options([*here, topic, "--save-snapshot", str(tmp_path)])
    (tmp_path / "part-0.parquet").write_bytes(b"of another job")
    with pytest.raises(JobError, match="is there already: name a new folder"):
        audit(spark, options, StopRequest())
