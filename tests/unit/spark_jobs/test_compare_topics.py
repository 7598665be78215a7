"""What compare_topics does before Spark is there."""

from __future__ import annotations

import pytest

from spark_jobs import compare_topics
from spark_jobs.common.cluster import LogRange
from spark_jobs.common.job import JobError
from spark_jobs.comparison.options import ComparisonOptions, Side
from spark_jobs.comparison.ranges import TopicRange

COPY = ["--topic", "a", "--other-topic", "b", "--bootstrap-servers", "here:1", "--other-bootstrap-servers", "there:2"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that are asked, in their order; every topic has two records."""
    order: list[str] = []
    monkeypatch.setattr(compare_topics, "check_reachable", lambda servers, *_: order.append(servers))

    def pin_side(side: Side, _options: ComparisonOptions) -> list[TopicRange]:
        order.append(f"{side.topics[0]} of {side.connection.bootstrap_servers}")
        if side.topics[0] == "gone":
            raise JobError("there is no topic gone")
        return [TopicRange(topic=side.topics[0], partitions={0: LogRange(0, 2)})]

    monkeypatch.setattr(compare_topics, "pin_side", pin_side)
    return order


def no_spark(*_: object, **__: object) -> int:
    raise AssertionError("a dry run starts no Spark")


def test_a_dry_run_looks_at_both_sides_and_starts_no_spark(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_topics, "run_job", no_spark)
    assert compare_topics.main([*COPY, "--dry-run"]) == 0
    assert asked == ["here:1", "there:2", "a of here:1", "b of there:2"]


def test_a_dry_run_says_what_is_not_there(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_topics.main([*COPY, "--dry-run", "--other-topic", "gone"]) == 1
    assert capsys.readouterr().err == "compare_topics: error: there is no topic gone\n"


def test_no_spark_starts_for_a_topic_that_is_not_there(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_topics.main([*COPY, "--topic", "gone"]) == 1
    assert capsys.readouterr().err == "compare_topics: error: there is no topic gone\n"
