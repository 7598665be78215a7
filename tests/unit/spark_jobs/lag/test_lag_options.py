"""The command line of consumer_lag: what is understood, what is refused, without a JVM."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.lag.lag_options import parse_options
from spark_jobs.lag.offset_rows import TimePoints


def test_the_command_of_the_page() -> None:
    options = parse_options(["--once", "--output", "./lag"])
    assert (options.once, options.dry_run, options.window_ms, options.trigger_ms) == (True, False, 3_600_000, 60_000)
    assert (options.groups, options.topics, options.points, options.plots) == ((), (), 30, 20)
    assert (options.limits.stalled_after_ms, options.limits.tolerance) == (300_000, 0)
    assert dict(options.run.conf)["spark.sql.streaming.kafka.useDeprecatedOffsetFetching"] == "true"


def test_groups_may_have_commas_and_conf_comes_last() -> None:
    options = parse_options(
        [
            "--output",
            "o",
            "--group",
            "a,b",
            "--group",
            "c",
            "--topic",
            "t,u",
            "--conf",
            "spark.sql.shuffle.partitions=9",
        ]
    )
    assert (options.groups, options.topics) == (("a,b", "c"), ("t", "u"))
    assert dict(options.run.conf)["spark.sql.shuffle.partitions"] == "9"


def test_a_dry_run_is_one_sample_without_an_output() -> None:
    options = parse_options(["--dry-run"])
    assert (options.once, options.output) == (True, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --output"),
        (["--output", "o", "--window", "0s"], "argument --window: no time at all"),
        (["--output", "o", "--points", "0"], "argument --points: '0' is no positive number"),
        (["--output", "o", "--tolerance", "-1"], "argument --tolerance: '-1' is no number"),
        (["--output", "o", "--once", "--trigger", "1s"], "argument --trigger: not allowed with argument --once"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], message: str, refusal: Callable[..., str]) -> None:
    assert refusal(parse_options, arguments) == f"consumer_lag: error: {message}"


def test_points_end_now_and_cover_the_window() -> None:
    points = TimePoints.before(1_000, 300, 4)
    assert points.times_ms() == [700, 800, 900, 1_000]
    assert TimePoints.before(1_000, 300, 1).times_ms() == [1_000]
    assert TimePoints.before(1_000, 1, 3).times_ms() == [998, 999, 1_000]


def test_help_explains_the_options_and_ends_with_examples(help_of: Callable[..., str]) -> None:
    text, _, examples = help_of(parse_options).partition("examples:")
    assert "--stalled-after INTERVAL" in text
    assert examples.count("python -m spark_jobs.consumer_lag ") == 2
