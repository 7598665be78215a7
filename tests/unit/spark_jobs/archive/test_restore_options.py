"""The command line of restore_topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.archive.restore_options import default_group, parse_options
from spark_jobs.archive.restore_plan import Place, TimeRange

ARCHIVE = ["--archive", "archive"]


def test_the_command_of_the_page() -> None:
    options = parse_options([*ARCHIVE, "--create-topic", "--exactly-once"])
    settings = options.writer_settings()
    assert settings.client == {"bootstrap.servers": "127.0.0.1:9092"}
    assert (settings.exactly_once, settings.batch_records, settings.has_source_header) == (True, 10_000, True)
    assert settings.transactional_id(Place("a", 3)) == f"{options.group}-a-3"
    assert options.topic_config == {"retention.ms": "-1"}


def test_topics_and_partitions_are_mapped() -> None:
    options = parse_options(
        [*ARCHIVE, "--map-topic", "a=b", "--map-partition", "0=1", "--map-partition", "a:1=0", "--topic", "a,c"]
    )
    assert options.topics == ("a", "c")
    assert options.mapping.target(Place("a", 0)) == Place("b", 1)
    assert options.mapping.target(Place("a", 1)) == Place("b", 0)
    assert options.mapping.target(Place("c", 1)) == Place("c", 1)


def test_times_are_those_of_the_time_zone() -> None:
    times = ["--starting-timestamp", "2024-01-01T01:00", "--ending-timestamp", "1704067200001"]
    options = parse_options([*ARCHIVE, *times, "--timezone", "Europe/Prague"])
    assert options.times == TimeRange(starting_timestamp_ms=1_704_067_200_000, ending_timestamp_ms=1_704_067_200_001)
    assert options.writer_settings().times == options.times


def test_the_group_is_that_of_the_archive_wherever_the_job_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_group("archive") == default_group(str(tmp_path / "archive"))
    assert default_group("archive") != default_group("archive2")
    assert default_group("s3a://lake/archive").startswith("restore_topic-")
    assert parse_options([*ARCHIVE, "--group", "mine"]).group == "mine"


def test_settings_of_new_topics_replace_the_retention() -> None:
    options = parse_options([*ARCHIVE, "--create-topic", "--topic-config", "retention.ms=5", "--partitions", "9"])
    assert (options.topic_config, options.partitions) == ({"retention.ms": "5"}, 9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--archive"),
        ([*ARCHIVE, "--map-topic", "a"], "'a' is not KEY=VALUE"),
        ([*ARCHIVE, "--map-topic", "a=b c"], "'b c' is no topic name"),
        ([*ARCHIVE, "--map-partition", "a=1"], "'a=1' is not of the form OLD=NEW or TOPIC:OLD=NEW"),
        ([*ARCHIVE, "--map-partition", "0=-1"], "is not of the form"),
        ([*ARCHIVE, "--starting-timestamp", "yesterday"], "argument --starting-timestamp: Invalid isoformat"),
        ([*ARCHIVE, "--batch-records", "0"], "'0' is no positive number"),
        ([*ARCHIVE, "--topic-config", "a=b"], "belong to --create-topic"),
        ([*ARCHIVE, "--partitions", "3"], "belong to --create-topic"),
        ([*ARCHIVE, "--compression", "rar"], "invalid choice"),
    ],
)
def test_invalid_options_are_refused_with_one_line(
    arguments: list[str], message: str, refusal: Callable[..., str]
) -> None:
    error = refusal(parse_options, arguments)
    assert error.startswith("restore_topic: error: ")
    assert message in error
