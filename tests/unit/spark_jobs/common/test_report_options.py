from __future__ import annotations

import argparse

import pytest

from spark_jobs.common.report_options import ReportOptions, add_report_arguments, report_of


def parse(*arguments: str) -> ReportOptions:
    parser = argparse.ArgumentParser()
    add_report_arguments(parser, "findings")
    return report_of(parser.parse_args(arguments))


def test_twenty_rows_are_printed_and_none_is_written() -> None:
    assert parse() == ReportOptions(shown=20, output=None, output_format="parquet")
    assert parse("--output", "o", "--output-format", "json", "--show", "0") == ReportOptions(
        shown=0, output="o", output_format="json"
    )


@pytest.mark.parametrize(
    ("shown", "total", "lines"),
    [("3", 3, []), ("3", 1_003, ["... and 1,000 more: --output writes all of them"]), ("0", 5, [])],
)
def test_a_line_says_that_there_are_more(shown: str, total: int, lines: list[str]) -> None:
    assert parse("--show", shown).more(total) == lines
