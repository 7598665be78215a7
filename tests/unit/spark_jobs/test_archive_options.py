"""The command line of archive_topic: what is understood, what it means to Spark, what is refused, without a JVM."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.archive_options import ArchiveOptions, _starting_offsets, parse_options

WHERE = ["--output", "out", "--checkpoint", "cp"]
EVENTS = ["--topic", "events", *WHERE]


def parse(*arguments: str) -> ArchiveOptions:
    return parse_options([*EVENTS, *arguments])


def test_the_command_of_the_readme() -> None:
    options = parse()
    assert options.source_options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "subscribe": "events",
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    assert options.trigger_ms == 5_000
    assert (options.partition_by, options.timezone, options.compression) == (("date",), "UTC", "snappy")


def test_every_option_of_the_source_reaches_it() -> None:
    options = parse(
        *("--bootstrap-servers", "a:1,b:2"),
        *("--starting-offsets", '{"events": {"0": 23, "1": -1}}'),
        *("--max-offsets-per-trigger", "1000"),
        *("--min-partitions", "8"),
        "--no-include-headers",
        "--no-fail-on-data-loss",
        *("--consumer-option", "security.protocol=SASL_SSL"),
        *("--consumer-option", "kafka.sasl.jaas.config=X required username=a password=b=c;"),
    )
    assert options.source_options() == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.jaas.config": "X required username=a password=b=c;",
        "subscribe": "events",
        "startingOffsets": '{"events": {"0": 23, "1": -1}}',
        "includeHeaders": "false",
        "failOnDataLoss": "false",
        "maxOffsetsPerTrigger": "1000",
        "minPartitions": "8",
    }


def test_settings_of_the_consumer_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# comment\nsecurity.protocol=SASL_SSL\nsasl.mechanism = PLAIN\nkafka.group.id=a=\\u00e4\n")
    options = parse("--consumer-option", "sasl.mechanism=SCRAM-SHA-512", "--consumer-config", str(file))
    assert options.consumer_options == (
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("group.id", "a=ä"),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "client.properties cannot be read: No such file"),
        (b"a=canary\\u00zz", "is no properties file in UTF-8"),
        (b"a=canary\xff", "is no properties file in UTF-8"),
        (b"bootstrap.servers=canary:1", "bootstrap.servers cannot be set: use --bootstrap-servers"),
    ],
)
def test_a_file_that_is_refused_shows_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SystemExit):
        parse("--consumer-config", str(file))
    error = capsys.readouterr().err
    assert message in error
    assert "canary" not in error


def test_several_topics_or_a_pattern() -> None:
    assert parse_options(["--topic", "a, b.c", *WHERE]).source_options()["subscribe"] == "a,b.c"
    source = parse_options(["--subscribe-pattern", "events-.*", *WHERE]).source_options()
    assert source["subscribePattern"] == "events-.*"
    assert "subscribe" not in source


@pytest.mark.parametrize(
    ("timestamp", "timezone", "expected"),
    [
        ("1704067200000", "UTC", "1704067200000"),
        ("2024-01-01", "UTC", "1704067200000"),
        ("2024-01-01T01:00:00", "Europe/Prague", "1704067200000"),
        ("2024-01-01T00:00:00.123456Z", "Europe/Prague", "1704067200123"),
        ("2024-07-01T02:00:00", "Europe/Prague", "1719792000000"),
    ],
)
def test_a_starting_time_is_that_of_the_time_zone(timestamp: str, timezone: str, expected: str) -> None:
    source = parse("--starting-timestamp", timestamp, "--timezone", timezone).source_options()
    assert source["startingTimestamp"] == expected
    assert source["startingOffsetsByTimestampStrategy"] == "latest"
    assert "startingOffsets" not in source


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0s", 0), ("250ms", 250), ("10 seconds", 10_000), ("1 minute", 60_000), ("2m", 120_000), ("1 hour", 3_600_000)],
)
def test_a_trigger_is_an_interval(text: str, milliseconds: int) -> None:
    assert parse("--trigger", text).trigger_ms == milliseconds


def test_available_now() -> None:
    assert parse("--available-now").trigger_ms is None


def test_a_schema_is_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "struct", "fields": []}\n')
    assert parse("--value-format", "json", "--schema", "id BIGINT").schema == "id BIGINT"
    assert parse("--value-format", "json", "--schema", str(file)).schema == '{"type": "struct", "fields": []}'
    long = ", ".join(f"column{number} STRING" for number in range(500))
    assert parse("--value-format", "json", "--schema", long).schema == long


def test_partition_columns_keep_their_order() -> None:
    assert parse("--partition-by", "topic,date,hour").partition_by == ("topic", "date", "hour")


def test_settings_of_spark() -> None:
    options = parse("--conf", "spark.ui.enabled=false", "--conf", "a=b=c", "--master", "local[2]")
    assert options.conf == (("spark.ui.enabled", "false"), ("a", "b=c"))
    assert options.master == "local[2]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (WHERE, "one of the arguments --topic --subscribe-pattern is required"),
        (["--topic", "a", "--subscribe-pattern", "b", *WHERE], "not allowed with argument"),
        (["--topic", "a b", *WHERE], "'a b' is no topic name"),
        (["--subscribe-pattern", " ", *WHERE], "an empty pattern"),
        (["--topic", "a", "--output", "o"], "--checkpoint"),
        ([*EVENTS, "--starting-offsets", "first"], "'first' is neither earliest, latest nor JSON"),
        ([*EVENTS, "--starting-offsets", '{"events": {"0": -3}}'], "is not of the form"),
        ([*EVENTS, "--starting-offsets", '{"events": 3}'], "is not of the form"),
        ([*EVENTS, "--starting-offsets", "latest", "--starting-timestamp", "0"], "not allowed with argument"),
        ([*EVENTS, "--starting-timestamp", "yesterday"], "argument --starting-timestamp: Invalid isoformat"),
        ([*EVENTS, "--starting-timestamp", "1969-12-31"], "1969-12-31 is before 1970"),
        ([*EVENTS, "--trigger", "often"], "'often' is no interval"),
        ([*EVENTS, "--trigger", "1s", "--available-now"], "not allowed with argument"),
        ([*EVENTS, "--max-offsets-per-trigger", "0"], "'0' is no positive number"),
        ([*EVENTS, "--partition-by", "date,week"], "'date,week' is no choice of topic, date, hour"),
        ([*EVENTS, "--partition-by", "date,date"], "is no choice"),
        ([*EVENTS, "--timezone", "Mars/Base"], "'Mars/Base' is no time zone"),
        ([*EVENTS, "--timezone", "../../etc/passwd"], "is no time zone"),
        ([*EVENTS, "--consumer-option", "retries"], "'retries' is not KEY=VALUE"),
        ([*EVENTS, "--consumer-option", "kafka.auto.offset.reset=latest"], "use --starting-offsets"),
        ([*EVENTS, "--value-format", "json"], "--value-format json needs --schema"),
        ([*EVENTS, "--schema", "id BIGINT"], "--schema belongs to --value-format json"),
        ([*EVENTS, "--master", "mesos"], "'mesos' is no master"),
        ([*EVENTS, "--compression", "rar"], "invalid choice"),
    ],
)
def test_invalid_options_are_refused_with_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("archive_topic: error: ")
    assert message in error


@given(st.text(max_size=30) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_offsets_are_taken_or_refused_and_never_crash(text: str) -> None:
    try:
        taken = _starting_offsets(text)
    except argparse.ArgumentTypeError:
        return
    assert taken == text
