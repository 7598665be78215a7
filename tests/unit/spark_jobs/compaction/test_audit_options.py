from __future__ import annotations

import pytest

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
    assert (options.output, options.output_format, options.shown, options.dry_run) == (None, "parquet", 20, False)
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
        ([*USERS, "--show", "few"], "'few' is no positive number"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("audit_compaction: error: ")
    assert message in error


def test_the_help_says_what_the_status_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(["--help"])
    assert ended.value.code == 0
    help_text = capsys.readouterr().out
    assert "exit status: 0 nothing is wrong, 3 something is, 1 error" in help_text
    assert help_text.splitlines()[-1].startswith("  python -m spark_jobs.audit_compaction --log-dirs")
