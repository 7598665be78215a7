"""The command line of validate_records."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.validation.validation_options import parse_options

WRITTEN = ["--schema", "s.json", "--output-topic", "good", "--dead-letter-topic", "bad"]
CLICKS = ["--topic", "clicks", *WRITTEN]


def test_the_command_of_the_page() -> None:
    options = parse_options([*CLICKS, "--checkpoint", "cp"])
    assert options.source_options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "subscribe": "clicks",
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    assert (options.output_topic, options.dead_letter_topic, options.trigger_ms) == ("good", "bad", 5_000)


def test_a_dry_run_needs_no_checkpoint() -> None:
    options = parse_options([*CLICKS, "--dry-run", "--max-offsets-per-trigger", "5"])
    assert options.checkpoint is None
    assert options.source_options()["maxOffsetsPerTrigger"] == "5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (CLICKS, "the following arguments are required: --checkpoint"),
        ([*CLICKS, "--checkpoint", "c", "--dead-letter-topic", "good"], "are the same"),
        ([*CLICKS, "--checkpoint", "c", "--output-topic", "clicks"], "clicks would be read and written"),
        (["--subscribe-pattern", "b.*", *WRITTEN, "--dry-run"], "bad would be read and written"),
        ([*CLICKS, "--checkpoint", "c", "--topic-config", "a=b"], "--topic-config belongs to --create-topic"),
        ([*CLICKS, "--checkpoint", "c", "--output-topic", "a b"], "'a b' is no topic name"),
        (["--topic", "clicks", "--dry-run"], "--schema"),
    ],
)
def test_invalid_options_are_refused_with_one_line(
    arguments: list[str], message: str, refusal: Callable[..., str]
) -> None:
    error = refusal(parse_options, arguments)
    assert error.startswith("validate_records: error: ")
    assert message in error


def test_a_pattern_of_java_that_python_does_not_know_is_taken() -> None:
    assert parse_options(["--subscribe-pattern", r"\p{Alpha}+", *WRITTEN, "--dry-run"]).source.topics == ()
