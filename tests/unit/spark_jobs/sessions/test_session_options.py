"""The command line of sessionize: what is understood, what it means to Spark, what is refused, without a JVM."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.sessions.session_options import SessionOptions, parse_options

WHERE = ["--topic", "clicks", "--output-topic", "sessions", "--checkpoint", "cp"]


def parse(*arguments: str) -> SessionOptions:
    return parse_options([*WHERE, *arguments])


def test_the_command_of_the_page() -> None:
    options = parse()
    assert options.source.options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "subscribe": "clicks",
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
    }
    assert (options.gap_ms, options.watermark_ms, options.trigger_ms) == (1_800_000, 600_000, 5_000)
    assert (options.fields.user, options.fields.time, options.fields.page) == ("user", "time", "page")


def test_options_reach_the_query() -> None:
    options = parse("--gap", "90s", "--watermark", "0s", "--time-field", "", "--max-ahead", "5m", "--available-now")
    assert (options.gap_ms, options.watermark_ms, options.trigger_ms) == (90_000, 0, None)
    assert (options.fields.time, options.fields.max_ahead_ms) == ("", 300_000)
    assert parse("--max-offsets-per-trigger", "7").source.options()["maxOffsetsPerTrigger"] == "7"


def test_the_number_of_parts_of_the_state_is_a_setting_that_conf_replaces() -> None:
    options = parse("--state-partitions", "3", "--conf", "spark.sql.shuffle.partitions=5")
    assert [value for _, value in options.run.conf] == ["3", "5"]
    assert {key for key, _ in options.run.conf} == {"spark.sql.shuffle.partitions"}


def test_a_dry_run_needs_no_checkpoint() -> None:
    assert parse_options([*WHERE[:4], "--dry-run"]).checkpoint is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (WHERE[:4], "the following arguments are required: --checkpoint"),
        ([*WHERE, "--gap", "0s"], "argument --gap: no time at all"),
        ([*WHERE, "--gap", "soon"], "argument --gap: 'soon' is no interval such as \"30 seconds\""),
        ([*WHERE, "--state-partitions", "0"], "argument --state-partitions: '0' is no positive number"),
        ([*WHERE, "--output-topic", "a b"], "argument --output-topic: 'a b' is no topic name"),
        (
            [*WHERE, "--output-topic", "clicks"],
            "--output-topic clicks is also read: sessions would be taken for clicks",
        ),
        (
            ["--subscribe-pattern", "sess.*", *WHERE[2:]],
            "--output-topic sessions is also read: sessions would be taken for clicks",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], message: str, refusal: Callable[..., str]) -> None:
    assert refusal(parse_options, arguments) == f"sessionize: error: {message}"


def test_help_explains_the_options_and_ends_with_examples(help_of: Callable[..., str]) -> None:
    text, _, examples = help_of(parse_options).partition("examples:")
    assert "--gap INTERVAL" in text
    assert examples.count("python -m spark_jobs.sessionize ") == 2
