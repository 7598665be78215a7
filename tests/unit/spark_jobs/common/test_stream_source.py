from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from spark_jobs.common.options import add_connection_arguments, add_range_arguments, job_parser
from spark_jobs.common.stream_source import StreamSource, add_source_arguments, source_of


def parser() -> argparse.ArgumentParser:
    made = job_parser("sessionize", "Groups clicks.")
    add_connection_arguments(made)
    add_source_arguments(made, "clicks")
    add_range_arguments(made, ending=False)
    return made


def parse(*arguments: str) -> StreamSource:
    return source_of(parser(), parser().parse_args(arguments))


def test_several_topics_or_a_pattern() -> None:
    source = parse("--topic", "a, b.c")
    assert source.options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "subscribe": "a,b.c",
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
    }
    assert source.name == "a, b.c"
    source = parse("--subscribe-pattern", "events-.*", "--max-offsets-per-trigger", "7", "--no-fail-on-data-loss")
    assert source.options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "subscribePattern": "events-.*",
        "startingOffsets": "earliest",
        "failOnDataLoss": "false",
        "maxOffsetsPerTrigger": "7",
    }
    assert source.name == "events-.*"


@pytest.mark.parametrize(
    ("arguments", "topic", "is_read"),
    [
        (["--topic", "a,b"], "b", True),
        (["--topic", "a,b"], "c", False),
        (["--topic", "a,b"], "", False),
        (["--subscribe-pattern", "events-.*"], "events-1", True),
        (["--subscribe-pattern", "events-.*"], "old-events-1", False),
        (["--subscribe-pattern", r"\p{Alpha}+"], "a", False),  # Python has no such pattern
    ],
)
def test_a_topic_is_read_by_its_name_or_by_a_pattern(arguments: list[str], topic: str, is_read: bool) -> None:
    assert parse(*arguments).reads(topic) is is_read


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --topic --subscribe-pattern is required"),
        (["--topic", "a", "--subscribe-pattern", "b"], "not allowed with argument --topic"),
        (["--subscribe-pattern", " "], "an empty pattern"),
        (["--topic", "a", "--max-offsets-per-trigger", "0"], "'0' is no positive number"),
    ],
)
def test_what_is_refused_is_one_line(arguments: list[str], message: str, refusal: Callable[..., str]) -> None:
    assert message in refusal(lambda given: parse(*given), arguments)


def test_the_help_has_the_word_of_the_job() -> None:
    assert "stop when clicks were deleted before they were read" in " ".join(parser().format_help().split())
