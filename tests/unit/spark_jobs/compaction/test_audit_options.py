from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.common.report_options import ReportOptions
from spark_jobs.compaction.options import parse_options

USERS = ["--log-dirs", "/data", "--topic", "users,groups"]


def test_the_defaults() -> None:
    options = parse_options(USERS)
    assert (options.log_dirs, options.topics, options.before, options.save_snapshot) == (
        "/data",
        ("users", "groups"),
        None,
        None,
    )
    assert options.report == ReportOptions(shown=20, output=None, output_format="parquet")
    assert not options.dry_run
    assert options.source_options() == {
        "topic": "users,groups",
        "isolationLevel": "read_committed",
        "beyondHighWatermark": "true",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "users"], "the following arguments are required: --log-dirs"),
        (["--log-dirs", "/data"], "the following arguments are required: --topic"),
        ([*USERS, "--output", "o"], "--output writes what is found with --before"),
        ([*USERS, "--show", "few"], "'few' is no number"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], message: str, refusal: Callable[..., str]) -> None:
    error = refusal(parse_options, arguments)
    assert error.startswith("audit_compaction: error: ")
    assert message in error


def test_the_help_says_what_the_status_means(help_of: Callable[..., str]) -> None:
    help_text = help_of(parse_options)
    assert "exit status: 0 nothing is wrong, 3 something is, 1 error" in help_text
    assert help_text.splitlines()[-1].startswith("  python -m spark_jobs.audit_compaction --log-dirs")
