from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.balance.options import BalanceOptions, parse_options

DIRS = ["--log-dirs", "/a,/b"]


def parse(*arguments: str) -> BalanceOptions:
    return parse_options([*DIRS, *arguments])


def test_the_defaults() -> None:
    options = parse()
    assert options.connection is not None
    assert options.connection.bootstrap_servers == "127.0.0.1:9092"
    assert (options.log_dirs, options.balance_by, options.tolerance) == ("/a,/b", "bytes", 0.05)
    assert (options.max_moved_bytes, options.max_moves, options.output, options.dry_run) == (None, None, None, False)
    assert options.source_options(replicas="all") == {"replicas": "all", "beyondHighWatermark": "true"}


def test_what_a_plan_may_cost() -> None:
    options = parse("--max-moved-bytes", "50GB", "--max-moves", "3", "--tolerance", "0", "--balance-by", "rate")
    assert (options.max_moved_bytes, options.max_moves, options.tolerance) == (50 * 2**30, 3, 0.0)
    assert options.balance_by == "rate"


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("12", 12), ("1k", 1_024), ("2 MiB", 2 * 2**20), ("3GB", 3 * 2**30), ("1T", 2**40)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse("--max-moved-bytes", text).max_moved_bytes == size


def test_a_report_asks_no_cluster() -> None:
    assert parse("--report-only").connection is None
    assert parse("--topic", "a,b").source_options() == {"topic": "a,b", "beyondHighWatermark": "true"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --log-dirs"),
        ([*DIRS, "--max-moved-bytes", "much"], "'much' is no size such as 500MB"),
        ([*DIRS, "--max-moved-bytes", "-1"], "'-1' is no size"),
        ([*DIRS, "--max-moves", "0"], "'0' is no positive number"),
        ([*DIRS, "--balance-by", "records"], "invalid choice: 'records'"),
        ([*DIRS, "--report-only", "--output", "p"], "--output is the file of the plan: not with --report-only"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], message: str, refusal: Callable[..., str]) -> None:
    error = refusal(parse_options, arguments)
    assert error.startswith("balance_partitions: error: ")
    assert message in error


def test_the_help_is_for_a_stranger(help_of: Callable[..., str]) -> None:
    help_text = help_of(parse_options)
    assert "Nothing is moved by this job." in help_text
    assert help_text.splitlines()[-1].startswith("  python -m spark_jobs.balance_partitions --log-dirs")
