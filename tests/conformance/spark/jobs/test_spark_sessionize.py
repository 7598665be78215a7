"""`sessionize` against a real broker: its sessions are those of a model in plain Python, after kills as well.

The model needs the batches that Spark has made: the checkpoint names the offsets and the watermark of each of them, and
the model computes the watermark itself.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.sessionize import main
from spark_jobs.sessions.session_options import parse_options
from spark_jobs.sessions.session_run import sessionize
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.click_sessions import Click, Session, SessionModel, random_clicks
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.spark.pieces import MARKS, Outgoing, SparkJob, kafka_batch, received, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

PARTITIONS = 3
GAP_MS = 600_000
DELAY_MS = 300_000
BEGIN_MS = 1_700_000_000_000
JOB_START_LIMIT_S = 60
BATCH = r"^batch \d+: "
SOAK_KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "20"))
KEEP_FOR_EVER = {"retention.ms": "-1"}


class Planned(NamedTuple):
    """A batch as its checkpoint has it."""

    ends: Mapping[str, int]  # by partition
    watermark_ms: int


class Clicks:
    """A topic of clicks, a topic of sessions, and runs of the job between them."""

    def __init__(self, spark: SparkSession, broker: Broker, unique: Callable[[str], str], directory: Path) -> None:
        self._spark = spark
        self._bootstrap = broker.bootstrap
        self.topic = Admin(broker.bootstrap).create_topic(unique("clicks"), PARTITIONS, KEEP_FOR_EVER)
        self.sessions = Admin(broker.bootstrap).create_topic(unique("sessions"), 2, KEEP_FOR_EVER)
        self.checkpoint = directory / "checkpoint"
        self.arguments = ["--bootstrap-servers", broker.bootstrap, "--topic", self.topic]
        self.arguments += ["--output-topic", self.sessions, "--checkpoint", str(self.checkpoint)]
        self.arguments += ["--gap", "10 minutes", "--watermark", "5 minutes", "--max-offsets-per-trigger", "50"]
        self.sent: list[Click] = []
        self._rng = random.Random(16)

    def send(self, count: int) -> None:
        """Clicks that begin where those before have ended."""
        begin_ms = max((click.time_ms for click in self.sent), default=BEGIN_MS)
        made = random_clicks(self._rng, count, begin_ms=begin_ms, gap_ms=GAP_MS)
        records = {
            json.dumps({"user": user, "time": time_ms, "page": page}).encode(): (user, time_ms, page)
            for user, time_ms, page in made
        }
        placed = send(
            self._bootstrap,
            self.topic,
            (Outgoing(value=value, partition=self._rng.randrange(PARTITIONS)) for value in records),
        )
        for record in placed:
            user, time_ms, page = records[record.value or b""]
            self.sent.append(Click(time_ms, record.partition, record.offset, user, page))

    def run(self, *arguments: str) -> None:
        options = parse_options([*self.arguments, "--available-now", *arguments])
        sessionize(self._spark, options, StopRequest())

    def written(self) -> list[Session]:
        """What is in the topic of sessions, checked that the key is the user."""
        found = []
        for record in received(kafka_batch(self._spark, self._bootstrap, subscribe=self.sessions).load()):
            value = json.loads(record.value or b"")
            assert record.key == value["user"].encode()
            first_ms, last_ms = _ms(value.pop("first_click")), _ms(value.pop("last_click"))
            assert value.pop("duration_ms") == last_ms - first_ms
            found.append(Session(first_ms=first_ms, last_ms=last_ms, **value))
        return found

    def planned(self) -> list[Planned]:
        """The batches, from the checkpoint."""
        files = sorted(self.checkpoint.glob("offsets/[0-9]*"), key=lambda path: int(path.name))
        found = []
        for file in files:
            _, metadata, offsets = file.read_text().splitlines()
            found.append(Planned(json.loads(offsets)[self.topic], json.loads(metadata)["batchWatermarkMs"]))
        return found

    def expected(self) -> tuple[list[Session], SessionModel]:
        """What the model makes of the batches."""
        model = SessionModel(gap_ms=GAP_MS, delay_ms=DELAY_MS)
        sessions: list[Session] = []
        begins = dict.fromkeys(map(str, range(PARTITIONS)), 0)
        for batch in self.planned():
            assert batch.watermark_ms == model.watermark_ms
            sessions += model.batch(
                [
                    click
                    for click in self.sent
                    if begins[str(click.partition)] <= click.offset < batch.ends[str(click.partition)]
                ]
            )
            begins = dict(batch.ends)
        assert sum(begins.values()) == len(self.sent)
        return sessions, model


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


def once(sessions: Sequence[Session]) -> list[Session]:
    """What a reader does: one record for each id. The others of that id are equal to it."""
    by_id = {session.session_id: session for session in sessions}
    assert len(set(sessions)) == len(by_id)
    return sorted(by_id.values())


@pytest.fixture
def topics(spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Clicks:
    return Clicks(spark, broker, unique, tmp_path)


def test_sessions_are_those_of_the_model_with_late_clicks_and_a_restart(
    topics: Clicks, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.send(220)
    topics.run()
    topics.send(180)
    topics.run()

    expected, model = topics.expected()
    assert len(topics.planned()) >= 10
    assert model.late > 10
    assert len(expected) > 50
    assert sorted(topics.written()) == sorted(expected)
    lines = capsys.readouterr().out.splitlines()
    late = sum(int(line.partition("late ")[2].partition(",")[0]) for line in lines if line.startswith("done: "))
    assert late == model.late


def test_a_batch_that_is_written_again_has_the_same_sessions(topics: Clicks) -> None:
    topics.send(150)
    topics.run()
    before = topics.written()
    # As if the job had died in its last batch, after the sink had written and before Spark had noted it.
    commits = sorted(topics.checkpoint.glob("commits/[0-9]*"), key=lambda path: int(path.name))
    writing = [batch for batch in commits[1:] if _ends_sessions(topics, int(batch.name))]
    for commit in commits[commits.index(writing[-1]) :]:
        commit.unlink()
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    for plan in topics.checkpoint.glob("offsets/[0-9]*"):
        if int(plan.name) > int(writing[-1].name):
            plan.unlink()
            plan.with_name(f".{plan.name}.crc").unlink(missing_ok=True)
    topics.send(50)
    topics.run()

    written = topics.written()
    assert len(written) > len(set(written)), "records are doubled"
    assert set(before) <= set(written)
    expected, _ = topics.expected()
    assert once(written) == sorted(expected)


def _ends_sessions(topics: Clicks, number: int) -> bool:
    model = SessionModel(gap_ms=GAP_MS, delay_ms=DELAY_MS)
    begins = dict.fromkeys(map(str, range(PARTITIONS)), 0)
    written: list[Session] = []
    for batch in topics.planned()[: number + 1]:
        inside = [c for c in topics.sent if begins[str(c.partition)] <= c.offset < batch.ends[str(c.partition)]]
        written = model.batch(inside)
        begins = dict(batch.ends)
    return bool(written)


@pytest.mark.parametrize("kills", [1, pytest.param(SOAK_KILLS, marks=pytest.mark.soak)])
def test_sessions_after_kills_are_those_of_the_model(kills: int, topics: Clicks, tmp_path: Path) -> None:
    topics.send(300)
    options = ["--master", "local[2]", "--trigger", "0s", "--state-partitions", "2"]
    job = SparkJob("sessionize", [*topics.arguments, *options], tmp_path)
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for _ in range(kills):
        try:
            job.process.start()
            job.process.wait_for_line_in_processor_time(BATCH, JOB_START_LIMIT_S)
            threading.Event().wait(moments.uniform(0, 0.7))
        finally:
            job.kill_tree()
        topics.send(60)
    topics.run()

    expected, model = topics.expected()
    assert len(expected) > 50
    assert model.late > 10
    assert once(topics.written()) == sorted(expected)


def test_a_dry_run_prints_sessions_and_writes_nothing(topics: Clicks, capsys: pytest.CaptureFixture[str]) -> None:
    topics.send(10)
    options = parse_options([*topics.arguments, "--dry-run"])
    topics.run("--dry-run")

    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["session_id"]
    assert lines[-1].endswith(f"nothing is written to {options.output_topic}")
    assert topics.written() == []
    assert not topics.checkpoint.exists()


def test_records_that_are_no_clicks_are_counted(
    topics: Clicks, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [
        b"no json",
        b"{}",
        b'{"user": "a", "time": "never"}',
        b'{"user": "a", "time": "2100-01-01T00:00:00Z"}',
        None,
    ]
    good = [b'{"user": "a", "time": "2024-01-01T00:00:00.250Z", "page": 5}', b'{"user": 7, "time": 1704067200000}']
    send(broker.bootstrap, topics.topic, (Outgoing(value=value) for value in [*values, *good]))

    topics.run("--dry-run")
    topics.run()

    lines = capsys.readouterr().out.splitlines()
    found = {session["user"]: session for session in map(json.loads, lines[:2])}
    assert found["a"]["first_click"] == "2024-01-01T00:00:00.250Z"
    assert found["a"]["entry_page"] == "5"
    assert found["7"]["first_click"] == "2024-01-01T00:00:00.000Z"
    assert lines[-1] == "done: 7 records in 2 batches; unreadable 5, late 0, open sessions 2"


def test_the_page_shows_what_the_job_prints(topics: Clicks, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    section = (REPOSITORY / "docs" / "spark.md").read_text().partition("## Sessions: `sessionize`")[2]
    made, shown = re.findall(r"```json\n(.*?)```", section, re.DOTALL)[:2]
    send(broker.bootstrap, topics.topic, (Outgoing(value=line.encode()) for line in made.splitlines()))

    topics.run("--dry-run", "--gap", "30 minutes")

    assert "".join(capsys.readouterr().out.splitlines(keepends=True)[:-1]) == shown


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--topic", "missing"], "there is no topic missing on {bootstrap}: create it first, or check the name"),
        (["--bootstrap-servers", "127.0.0.1:1"], "no broker can be reached (127.0.0.1:1: Connection refused)"),
    ],
)
def test_what_is_not_there_is_one_line(
    topics: Clicks, broker: Broker, arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*topics.arguments, *arguments]) == 1
    assert capsys.readouterr().err == f"sessionize: error: {line.format(bootstrap=broker.bootstrap)}\n"
