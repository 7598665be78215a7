"""The command line of archive_topic: what is understood, what it means to Spark, what is refused, without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.archive.archive_options import ArchiveOptions, parse_options

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


@pytest.mark.parametrize("option", ["--command-config", "--consumer-config"])
def test_settings_of_the_consumer_in_a_file(option: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# comment\nsecurity.protocol=SASL_SSL\nsasl.mechanism = PLAIN\nkafka.group.id=a=\\u00e4\n")
    options = parse("--consumer-option", "sasl.mechanism=SCRAM-SHA-512", option, str(file))
    assert options.source.connection.properties == (
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("group.id", "a=ä"),
    )


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (WHERE, "one of the arguments --topic --subscribe-pattern is required"),
        (["--topic", "a", "--subscribe-pattern", "b", *WHERE], "not allowed with argument"),
        (["--topic", "a", "--output", "o"], "--checkpoint"),
        ([*EVENTS, "--starting-offsets", "latest", "--starting-timestamp", "0"], "not allowed with argument"),
        ([*EVENTS, "--trigger", "1s", "--available-now"], "not allowed with argument"),
        ([*EVENTS, "--max-offsets-per-trigger", "0"], "'0' is no positive number"),
        ([*EVENTS, "--partition-by", "date,week"], "'date,week' is no choice of topic, date, hour"),
        ([*EVENTS, "--partition-by", "date,date"], "is no choice"),
        ([*EVENTS, "--consumer-option", "kafka.auto.offset.reset=latest"], "use --starting-offsets"),
        ([*EVENTS, "--value-format", "json"], "--value-format json needs --schema"),
        ([*EVENTS, "--schema", "id BIGINT"], "--schema belongs to --value-format json"),
        ([*EVENTS, "--compression", "rar"], "invalid choice"),
    ],
)
def test_invalid_options_are_refused_with_one_line(
    arguments: list[str], message: str, refusal: Callable[..., str]
) -> None:
    error = refusal(parse_options, arguments)
    assert error.startswith("archive_topic: error: ")
    assert message in error
