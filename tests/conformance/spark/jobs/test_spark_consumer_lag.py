"""`consumer_lag` against a real broker: the lag that Kafka's tools print, trends, the page, a history that survives."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.records import offset_commit_key, offset_commit_value
from odradek.protocol.topic_partition import TopicPartition as Partition
from odradek.testing import Broker as FaultyBroker
from spark_jobs.common.code_archive import send_code
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.consumer_lag import main
from spark_jobs.lag import lag_run
from spark_jobs.lag.group_table import GroupPartition, GroupTable, committed_at_points
from spark_jobs.lag.history import History
from spark_jobs.lag.lag_options import parse_options
from spark_jobs.lag.lag_run import consumer_lag
from spark_jobs.lag.offset_records import TOPIC
from spark_jobs.lag.offset_rows import READ_INTERNAL_TOPICS, TimePoints, decoded, last_by_point
from spark_jobs.lag.trends import Sample, sample_rows, trends
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.processes.apache.tools import Tools
from tests.support.spark.pieces import MARKS, Outgoing, SparkJob, kafka_batch, send
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

JOB_START_LIMIT_S = 60
FLAGS_TIMEOUT_S = 120
NO_OFFSET = "-"

Row = tuple[str, ...]
"""Group, topic, partition, committed offset, log end and lag, as Kafka's tool prints them."""


@pytest.fixture(autouse=True)
def internal_topics(spark: SparkSession) -> Iterator[None]:
    """What the job's own session has; the one of the tests is shared."""
    spark.conf.set(READ_INTERNAL_TOPICS, "true")
    send_code(spark.sparkContext)
    yield
    spark.conf.unset(READ_INTERNAL_TOPICS)


def client(bootstrap: str, group: str, **config: str | bool) -> Consumer:
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **config},
    )


def commit(bootstrap: str, group: str, topic: str, *offsets: int) -> None:
    """Commit an offset for each partition, from the first on, without becoming a member."""
    consumer = client(bootstrap, group)
    places = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def commit_in_transaction(bootstrap: str, group: str, topic: str, offset: int, *, aborts: bool) -> None:
    consumer = client(bootstrap, group)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group})
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata())
    if aborts:
        producer.abort_transaction()
    else:
        producer.commit_transaction()
    consumer.close()


def described(lines: list[str]) -> set[Row]:
    return {tuple(line.split()[:6]) for line in lines if line.strip() and not line.startswith(("GROUP", "Consumer"))}


def printed_rows(printed: str) -> set[Row]:
    """The rows of the job's table."""
    lines = printed.splitlines()
    return {tuple(line.split()[:6]) for line in lines if re.match(r"\S+  +\S+ +\d+  ", line)}


def test_the_table_is_that_of_kafka_consumer_groups(
    spark: SparkSession,
    broker: Broker,
    tools: Tools,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    admin, topic = Admin(broker.bootstrap), unique("lagged")
    admin.create_topic(topic, 3)
    send(broker.bootstrap, topic, (Outgoing(value=b"%d" % n, partition=n % 3) for n in range(90)))
    names = ("half", "live", "aborted", "committed", "offsets-deleted", "moved-back")
    half, live, aborted, committed, deleted, back = groups = [unique(name) for name in names]
    commit(broker.bootstrap, half, topic, 10, 20, 30)
    commit_in_transaction(broker.bootstrap, aborted, topic, 5, aborts=False)
    commit_in_transaction(broker.bootstrap, aborted, topic, 25, aborts=True)
    commit_in_transaction(broker.bootstrap, committed, topic, 25, aborts=False)
    commit(broker.bootstrap, deleted, topic, 7, 7)
    commit(broker.bootstrap, back, topic, 30)
    commit(broker.bootstrap, back, topic, 3)
    tools.run("consumer-groups", *on(broker), "--delete-offsets", "--group", deleted, "--topic", f"{topic}:1")
    member = client(broker.bootstrap, live, **{"auto.offset.reset": "earliest"})
    member.subscribe([topic])
    try:
        eventually(lambda: member.poll(0.1) and member.assignment(), accept=lambda found: len(found or ()) == 3)
        member.commit(offsets=[TopicPartition(topic, 1, 4)], asynchronous=False)
        chosen = [part for group in groups for part in ("--group", group)]
        theirs = described(tools.run("consumer-groups", *on(broker), "--describe", *chosen).lines)
        ours = described(odradek("groups", *on(broker), "--describe", *chosen))
        capsys.readouterr()
        options = parse_options(["--bootstrap-servers", broker.bootstrap, *chosen, "--dry-run", "--window", "1m"])
        consumer_lag(spark, options, StopRequest())
    finally:
        member.close()

    printed = capsys.readouterr().out
    assert printed_rows(printed) == theirs == ours
    assert (live, topic, "0", NO_OFFSET, "30", NO_OFFSET) in theirs
    assert (aborted, topic, "0", "5", "30", "25") in theirs
    assert (back, topic, "0", "3", "30", "27") in theirs
    assert len(theirs) == 3 + 3 + 1 + 1 + 1 + 1
    states = {line.split()[0]: line for line in printed.splitlines() if topic in line}
    assert "empty" in states[half]
    assert "empty" not in states[live]
    assert printed.splitlines()[-1] == "dry run: nothing is written"

    records = kafka_batch(
        spark, broker.bootstrap, subscribe=TOPIC, **{"kafka.isolation.level": "read_committed"}
    ).load()
    table = GroupTable()
    table.apply(last_by_point(decoded(records), TimePoints.before(0, 0, 1)).collect())
    batch = {(*key.tp, offset) for key, offset in table.committed.items() if key.group in groups}
    assert batch == {(t, int(p), int(c)) for _, t, p, c, *_ in theirs if c != NO_OFFSET}


def on(broker: Broker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap


def odradek(*arguments: str) -> list[str]:
    """What a command of the project prints."""
    command = [sys.executable, "-m", "odradek", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


class Load:
    """Writes all the time; one group stops reading, one reads slower than that, one keeps up."""

    def __init__(self, bootstrap: str, unique: Callable[[str], str]) -> None:
        self.stalled, self.behind, self.good = (unique(name) for name in ("stalled", "behind", "good"))
        self._bootstrap = bootstrap
        self._topic = Admin(bootstrap).create_topic(unique("busy"))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Load:
        commit(self._bootstrap, self.stalled, self._topic, 0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5})
        consumers = {group: client(self._bootstrap, group) for group in (self.behind, self.good)}
        written = 0
        while not self._stopping.wait(0.2):
            for _ in range(100):
                producer.produce(self._topic, b"x", partition=0)
            producer.flush()
            written += 100
            for group, offset in ((self.behind, written // 2), (self.good, written)):
                place = TopicPartition(self._topic, 0, offset)
                consumers[group].commit(offsets=[place], asynchronous=False)
        for consumer in consumers.values():
            consumer.close()


def test_a_run_goes_on_after_a_sample_that_no_broker_serves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = StopRequest()
    refused = f"no sample: TopicAuthorizationException: Not authorized to access topics: [{TOPIC}]"
    said: list[str] = []
    with FaultyBroker() as broker:
        bootstrap = broker.bootstrap_servers
        send(bootstrap, "t", [Outgoing(value=b"v")])
        commit(bootstrap, "g", "t", 0)
        options = parse_options(
            ["--bootstrap-servers", bootstrap, "--output", str(tmp_path), "--window", "1m", "--trigger", "100ms"]
        )

        def say(line: str) -> None:
            if not said:
                commit(bootstrap, "g", "t", 1)
                broker.faults.not_authorized(TOPIC, api="Fetch", times=1)
            stop.requested = refused in said
            said.append(line)

        monkeypatch.setattr(lag_run, "say", say)
        consumer_lag(spark, options, stop)
    first, *between, last, stopped = said
    lags = ("1 group, 1 partition, lag 1; empty: g", "1 group, 1 partition, lag 0; empty: g")
    assert (first, last, stopped) == (*lags, "stopped")
    assert refused in between


def test_a_run_that_follows_flags_groups_and_is_killed(
    spark: SparkSession,
    broker: Broker,
    unique: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "lag"
    with Load(broker.bootstrap, unique) as load:
        groups = [part for group in (load.stalled, load.behind, load.good) for part in ("--group", group)]
        arguments = ["--bootstrap-servers", broker.bootstrap, *groups, "--output", str(output)]
        arguments += ["--window", "2m", "--stalled-after", "10s", "--tolerance", "1500"]
        job = SparkJob("consumer_lag", [*arguments, "--trigger", "1s", "--master", "local[2]"], tmp_path)
        flagged = rf"^3 groups, .*; stalled: {load.stalled}; falling behind: {load.behind}; empty: "
        try:
            job.process.start()
            job.process.wait_for_line_in_processor_time(r"^page: file:", JOB_START_LIMIT_S)
            eventually(
                job.process.log_text,
                accept=lambda text: re.search(flagged, text, re.MULTILINE),
                timeout_s=FLAGS_TIMEOUT_S,
            )
        finally:
            job.kill_tree()
        page = (output / "index.html").read_text()
        assert "</html>" in page
        assert '<meta http-equiv="refresh" content="1">' in page
        samples = History(spark, (output / "history").as_uri()).since(0).collect()
        assert samples
        assert (
            len({(row.time_ms, row.group) for row in samples}) == len(samples) == 3 * len({r.time_ms for r in samples})
        )

        consumer_lag(spark, parse_options([*arguments, "--once"]), StopRequest())
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith((load.behind, load.stalled))]
    assert "falling behind, empty" in next(line for line in lines if line.startswith(load.behind))
    assert "stalled, empty" in next(line for line in lines if line.startswith(load.stalled))
    assert {path.name for path in (output / "plots").iterdir()} == {
        f"{group}.png" for group in (load.stalled, load.behind, load.good)
    }
    assert (output / "overview.png").read_bytes().startswith(b"\x89PNG")


class Resources(HTMLParser):
    """What a page asks a browser to load, and the tags in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "data", "action", "srcset")]


def test_the_page_needs_nothing_else_and_names_are_no_markup(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("named"))
    send(broker.bootstrap, topic, [Outgoing(value=b"1")])
    hostile = f"<script>alert(1)</script>/../{unique('$x$')}"
    commit(broker.bootstrap, hostile, topic, 0)
    options = parse_options(
        ["--bootstrap-servers", broker.bootstrap, "--group", hostile, "--once", "--output", str(tmp_path / "lag")]
    )

    consumer_lag(spark, options, StopRequest())

    found = Resources((tmp_path / "lag" / "index.html").read_text())
    assert len(found.loaded) == 2
    assert all(loaded.startswith("data:image/png;base64,") for loaded in found.loaded)
    assert found.tags == {
        *("html", "head", "meta", "title", "style", "body"),
        *("h1", "h2", "p", "img", "table", "tr", "th", "td"),
    }
    assert len(list((tmp_path / "lag" / "plots").iterdir())) == 1


def test_trends_are_the_lines_through_the_samples(spark: SparkSession) -> None:
    def samples(group: str, committed: list[int | None], ends: list[int | None]) -> list[Sample]:
        return [
            Sample(second * 1_000, group, "t", 0, offset, end, 1)
            for second, (offset, end) in enumerate(zip(committed, ends, strict=True))
        ]

    found = trends(
        sample_rows(
            spark,
            [
                *samples("behind", [0, 10, 20, 30], [0, 30, 60, 90]),
                *samples("stuck", [None, 5, 7, 7, 7], [7, 8, 8, 8, 8]),
                *samples("noisy", [0, 10, 10, 30, 30], [9, 11, 19, 31, 39]),
                *samples("without", [None, None], [1, 2]),
            ],
        )
    )

    behind = found["behind", "t", 0]
    assert (behind.samples, behind.idle_ms) == (4, 0)
    slopes = (behind.lag_slope, behind.commit_slope, behind.end_slope, behind.explained)
    assert slopes == pytest.approx((20, 10, 30, 1))
    stuck = found["stuck", "t", 0]
    assert (stuck.samples, stuck.idle_ms) == (4, 2_000)
    assert found["noisy", "t", 0].explained == pytest.approx(0, abs=0.2)
    assert ("without", "t", 0) not in found


def test_commits_are_known_at_points_in_time(spark: SparkSession) -> None:
    place = Partition("t", 3)
    key = offset_commit_key("g", place)

    def record(time_ms: int, offset: int | None, log_offset: int) -> tuple[bytearray, bytearray | None, int, int]:
        value = (
            None
            if offset is None
            else offset_commit_value(OffsetAndMetadata(offset=offset, commit_timestamp_ms=time_ms))
        )
        return bytearray(key), None if value is None else bytearray(value), time_ms, log_offset

    from pyspark.sql import functions as F

    made = [record(50, 1, 0), record(95, 2, 1), record(100, 3, 2), record(110, 4, 3), record(230, None, 4)]
    made += [record(310, 9, 5), (bytearray(b"\x00"), None, 320, 6), (bytearray(b"\x00\x63"), None, 320, 7)]
    frame = spark.createDataFrame(made, "key BINARY, value BINARY, time_ms BIGINT, offset BIGINT").repartition(2)
    records = frame.withColumn("timestamp", F.timestamp_millis("time_ms"))

    rows = last_by_point(decoded(records), TimePoints(first_ms=100, step_ms=50, count=4)).collect()

    group_partition = GroupPartition("g", place)
    assert committed_at_points(rows, 4) == {group_partition: [3, 4, 4, 9]}
    table = GroupTable()
    table.apply(rows)
    assert table.committed == {group_partition: 9}
    assert table.unreadable == 2


def test_what_is_not_there_is_one_line(
    new_broker: Callable[..., Broker], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = new_broker().bootstrap
    arguments = ["--bootstrap-servers", bootstrap, "--once", "--output", str(tmp_path / "lag")]
    assert main(arguments) == 1
    line = f"consumer_lag: error: there is no {TOPIC} on {bootstrap}: no consumer group has committed an offset yet\n"
    assert capsys.readouterr().err == line
    assert main([*arguments, "--bootstrap-servers", "127.0.0.1:1"]) == 1
    line = "consumer_lag: error: no broker can be reached (127.0.0.1:1: Connection refused)\n"
    assert capsys.readouterr().err == line
    assert not (tmp_path / "lag").exists()
