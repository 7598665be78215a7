from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.common.report_options import ReportOptions
from spark_jobs.comparison.matching import Rules
from spark_jobs.comparison.options import ComparisonOptions, Side, parse_options

COPY = ["--topic", "orders", "--other-topic", "orders.copy"]


def parse(*arguments: str) -> ComparisonOptions:
    return parse_options([*COPY, *arguments])


def test_two_topics_of_one_cluster() -> None:
    options = parse()
    assert options.ours.connection.bootstrap_servers == "127.0.0.1:9092"
    assert options.other == Side(
        connection=options.ours.connection, topics=("orders.copy",), begin="earliest", end="latest"
    )
    assert options.rules == Rules(mode="key", headers=True, timestamps=True, partitions=False)
    assert options.report == ReportOptions(shown=20, output=None, output_format="parquet")
    assert (options.dry_run, options.read_committed) == (False, False)


def test_the_same_topics_of_two_clusters(tmp_path: Path) -> None:
    (tmp_path / "other.properties").write_text("security.protocol=SASL_SSL\n")
    other = ["--other-bootstrap-servers", "new:1", "--other-command-config", str(tmp_path / "other.properties")]
    options = parse_options(["--topic", "a,b", *other])
    assert options.ours.topics == options.other.topics == ("a", "b")
    assert options.ours.connection.source_options() == {"kafka.bootstrap.servers": "127.0.0.1:9092"}
    assert options.other.connection.source_options() == {
        "kafka.bootstrap.servers": "new:1",
        "kafka.security.protocol": "SASL_SSL",
    }


def test_what_is_compared() -> None:
    arguments = ["--no-compare-headers", "--no-compare-timestamps", "--compare-partitions"]
    assert parse(*arguments).rules == Rules(mode="key", headers=False, timestamps=False, partitions=True)
    assert parse("--match", "hash").rules == Rules(mode="hash")
    assert parse("--match", "offset").rules == Rules(mode="offset", partitions=True)


def test_ranges_of_both_sides() -> None:
    one, two = '{"orders": {"0": 1}}', '{"orders.copy": {"0": 2}}'
    options = parse("--starting-offsets", one, "--other-starting-offsets", two, "--other-ending-offsets", two)
    assert (options.ours.begin, options.ours.end) == (one, "latest")
    assert (options.other.begin, options.other.end) == (two, two)
    options = parse("--starting-timestamp", "1000", "--ending-timestamp", "1970-01-01T00:00:02")
    assert (options.starting_timestamp_ms, options.ending_timestamp_ms) == (1_000, 2_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "a"], "a topic would be compared with itself: name --other-topic or --other-bootstrap-servers"),
        (["--topic", "a,b", "--other-topic", "b,b"], "a topic would be compared with itself"),
        (["--topic", "a,b", "--other-topic", "c"], "--other-topic names 1 topics and --topic 2"),
        (["--other-topic", "c"], "the following arguments are required: --topic"),
        ([*COPY, "--match", "value"], "invalid choice: 'value'"),
        ([*COPY, "--show", "-1"], "'-1' is no number"),
        ([*COPY, "--output-format", "csv"], "invalid choice: 'csv'"),
        ([*COPY, "--other-command-config", "/dev/null"], None),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], message: str | None, refusal: Callable[..., str]
) -> None:
    if message is None:  # an empty file changes nothing
        assert parse_options(arguments).other.connection == parse().ours.connection
        return
    error = refusal(parse_options, arguments)
    assert error.startswith("compare_topics: error: ")
    assert message in error


def test_settings_of_another_cluster_need_its_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.properties").write_text("client.id=a\n")
    with pytest.raises(SystemExit):
        parse("--other-command-config", str(tmp_path / "other.properties"))
    assert "--other-command-config belongs to --other-bootstrap-servers" in capsys.readouterr().err


def test_the_help_says_what_the_status_means(help_of: Callable[..., str]) -> None:
    help_text = help_of(parse_options)
    assert "0 the topics are equal, 3 they differ, 1 error" in help_text
    assert help_text.splitlines()[-1].startswith("  python -m spark_jobs.compare_topics --topic")
