"""The options that jobs share: what is understood, what is refused with one line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.common.job import RunOptions
from spark_jobs.common.options import (
    add_connection_arguments,
    add_range_arguments,
    add_running_arguments,
    add_trigger_arguments,
    connection_of,
    ending_offsets,
    interval_ms,
    job_parser,
    properties_file,
    range_of,
    run_options_of,
    starting_offsets,
    timestamp_ms,
    topics,
    trigger_ms_of,
)

EVENTS = ("--topic", "events")


def parser() -> argparse.ArgumentParser:
    """All that the jobs share."""
    made = job_parser("archive_topic", "Compares topics.", "--topic events")
    add_connection_arguments(made)
    add_connection_arguments(made, other=True, older_names=("--old-name",))
    made.add_argument("--topic", type=topics)
    add_range_arguments(made)
    add_trigger_arguments(add_running_arguments(made))
    return made


def parse(*arguments: str) -> argparse.Namespace:
    return parser().parse_args([*EVENTS, *arguments])


def test_help_names_what_a_stranger_needs() -> None:
    text = parser().format_help()
    assert text.startswith("usage: archive_topic [-h]")
    for part in ("Compares topics.", "the cluster:", "the other cluster:", "where reading begins and ends:"):
        assert part in text
    assert text.endswith("examples:\n  python -m spark_jobs.archive_topic --topic events\n")
    assert "old-name" not in text


def test_one_cluster_or_two(tmp_path: Path) -> None:
    file = tmp_path / "other.properties"
    file.write_text("client.id=x\n")
    one = connection_of(parse("--bootstrap-servers", "a:1"), other=True)
    assert one.bootstrap_servers == "a:1"
    args = parse("--other-bootstrap-servers", "b:2", "--old-name", str(file))
    assert connection_of(args).bootstrap_servers == "127.0.0.1:9092"
    assert connection_of(args, other=True).source_options() == {
        "kafka.bootstrap.servers": "b:2",
        "kafka.client.id": "x",
    }


def test_a_range_has_offsets_or_times() -> None:
    def options(*arguments: str) -> dict[str, str]:
        return range_of(parser(), parse(*arguments)).source_options()

    assert options() == {"startingOffsets": "earliest"}
    offsets = '{"events": {"0": 23, "1": -1}}'
    assert options("--starting-offsets", "latest", "--ending-offsets", offsets) == {
        "startingOffsets": "latest",
        "endingOffsets": offsets,
    }
    times = (
        "--starting-timestamp",
        "2024-01-01T01:00",
        "--ending-timestamp",
        "2024-01-02",
        "--timezone",
        "Europe/Prague",
    )
    assert options(*times) == {
        "startingTimestamp": "1704067200000",
        "startingOffsetsByTimestampStrategy": "latest",
        "endingTimestamp": "1704150000000",
    }


def test_settings_of_spark() -> None:
    args = parse("--conf", "spark.ui.enabled=false", "--conf", "a=b=c", "--master", "local[2]", "--log-level", "WARN")
    conf = (("spark.ui.enabled", "false"), ("a", "b=c"))
    assert run_options_of(args) == RunOptions(master="local[2]", conf=conf, log_level="WARN")


def test_a_trigger_is_an_interval_or_what_is_there_now() -> None:
    assert trigger_ms_of(parse()) == 5_000
    assert trigger_ms_of(parse("--trigger", "0s")) == 0
    assert trigger_ms_of(parse("--available-now")) is None


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0s", 0), ("250ms", 250), ("10 seconds", 10_000), ("1 minute", 60_000), ("2m", 120_000), ("1 hour", 3_600_000)],
)
def test_an_interval_has_a_unit(text: str, milliseconds: int) -> None:
    assert interval_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("1704067200000", "UTC", 1_704_067_200_000),
        ("2024-01-01", "UTC", 1_704_067_200_000),
        ("2024-01-01T00:00:00.123456Z", "Europe/Prague", 1_704_067_200_123),
        ("2024-07-01T02:00:00", "Europe/Prague", 1_719_792_000_000),
    ],
)
def test_a_time_is_that_of_the_time_zone(text: str, zone: str, expected: int) -> None:
    assert timestamp_ms(text, zone) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "client.properties cannot be read: No such file"),
        (b"a=canary\\u00zz", "is no properties file"),
        (b"bootstrap.servers=canary:1", "bootstrap.servers cannot be set: use --bootstrap-servers"),
    ],
)
def test_a_file_that_is_refused_shows_no_value(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        properties_file(str(file))
    assert message in str(refused.value)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "a b"], "'a b' is no topic name"),
        (["--topic", ".."], "'..' is no topic name"),
        ([*EVENTS, "--starting-offsets", "first"], "'first' is neither earliest, latest nor JSON"),
        ([*EVENTS, "--starting-offsets", '{"events": {"0": -3}}'], "is not of the form"),
        ([*EVENTS, "--starting-offsets", '{"events": 3}'], "is not of the form"),
        ([*EVENTS, "--ending-offsets", "earliest"], "'earliest' is neither latest nor JSON"),
        ([*EVENTS, "--ending-offsets", '{"events": {"0": -2}}'], "is not of the form"),
        ([*EVENTS, "--starting-timestamp", "yesterday"], "argument --starting-timestamp: Invalid isoformat"),
        ([*EVENTS, "--ending-timestamp", "1969-12-31"], "argument --ending-timestamp: 1969-12-31 is before 1970"),
        ([*EVENTS, "--trigger", "often"], "'often' is no interval"),
        ([*EVENTS, "--timezone", "Mars/Base"], "'Mars/Base' is no time zone"),
        ([*EVENTS, "--timezone", "../../etc/passwd"], "is no time zone"),
        ([*EVENTS, "--conf", "retries"], "'retries' is not KEY=VALUE"),
        ([*EVENTS, "--master", "mesos"], "'mesos' is no master"),
    ],
)
def test_what_is_refused_is_one_line(arguments: list[str], message: str, refusal: Callable[..., str]) -> None:
    made = parser()
    assert message in refusal(lambda given: range_of(made, made.parse_args(given)), arguments)


@pytest.mark.parametrize("offsets", [starting_offsets, ending_offsets])
@given(text=st.text(max_size=30) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_offsets_are_taken_or_refused_and_never_crash(offsets: Callable[[str], str], text: str) -> None:
    try:
        taken = offsets(text)
    except argparse.ArgumentTypeError:
        return
    assert taken == text
