"""The options of `compare_topics`: its command line, checked before a JVM is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.common.job import RunOptions
from spark_jobs.common.kafka_options import KafkaConnection
from spark_jobs.common.options import (
    EARLIEST,
    LATEST,
    ReadRange,
    add_connection_arguments,
    add_range_arguments,
    add_running_arguments,
    connection_of,
    ending_offsets,
    job_parser,
    positive,
    range_of,
    run_options_of,
    starting_offsets,
    topics,
)
from spark_jobs.common.report_options import ReportOptions, add_report_arguments, report_of
from spark_jobs.comparison.matching import KEY, MODES, OFFSET, Rules

NAME = "compare_topics"
DESCRIPTION = """\
Compare two topics, or the same topics of two clusters, and report the records that are missing, extra, changed or in
another order. What is compared is what both sides hold when the job starts; the topics may go on growing.

exit status: 0 the topics are equal, 3 they differ, 1 error, 2 wrong command line"""
EXAMPLES = (
    "--topic orders --other-bootstrap-servers new-cluster:9092",
    "--topic orders --other-topic orders.copy --match offset --output ./differences",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two sides: a cluster, and its topics in the order in which they are compared."""

    connection: KafkaConnection
    topics: tuple[str, ...]
    begin: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """One run of the job."""

    ours: Side
    other: Side
    rules: Rules
    starting_timestamp_ms: int | None  # of records on both sides, beside the offsets
    ending_timestamp_ms: int | None
    read_committed: bool
    min_partitions: int | None
    report: ReportOptions
    dry_run: bool
    run: RunOptions


def parse_options(arguments: Sequence[str] | None = None) -> ComparisonOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    others = args.other_topic or args.topic
    if len(others) != len(args.topic):
        parser.error(f"--other-topic names {len(others)} topics and --topic {len(args.topic)}")
    ours_range = range_of(parser, args)
    ours, other = connection_of(args), connection_of(args, other=True)
    if args.other_command_config and args.other_bootstrap_servers is None:
        parser.error("--other-command-config belongs to --other-bootstrap-servers")
    if ours == other and any(pair[0] == pair[1] for pair in zip(args.topic, others, strict=True)):
        parser.error("a topic would be compared with itself: name --other-topic or --other-bootstrap-servers")
    return ComparisonOptions(
        ours=_side(ours, args.topic, ours_range),
        other=Side(
            connection=other,
            topics=others,
            begin=args.other_starting_offsets or EARLIEST,
            end=args.other_ending_offsets or LATEST,
        ),
        rules=Rules(
            mode=args.match,
            headers=args.compare_headers,
            timestamps=args.compare_timestamps,
            partitions=args.compare_partitions or args.match == OFFSET,
        ),
        starting_timestamp_ms=ours_range.starting_timestamp_ms,
        ending_timestamp_ms=ours_range.ending_timestamp_ms,
        read_committed=args.read_committed,
        min_partitions=args.min_partitions,
        report=report_of(args),
        dry_run=args.dry_run,
        run=run_options_of(args),
    )


def _side(connection: KafkaConnection, names: tuple[str, ...], read: ReadRange) -> Side:
    return Side(connection=connection, topics=names, begin=read.starting_offsets, end=read.ending_offsets or LATEST)


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(NAME, DESCRIPTION, *EXAMPLES)
    add_connection_arguments(parser)
    add_connection_arguments(parser, other=True)
    which = parser.add_argument_group("what is compared")
    which.add_argument("--topic", type=topics, required=True, metavar="TOPIC,...", help="the topic, or several")
    which.add_argument(
        "--other-topic", type=topics, metavar="TOPIC,...", help="what each of them is compared with (default: its name)"
    )
    which.add_argument(
        "--match",
        choices=MODES,
        default=KEY,
        help="what identifies a record. key: its key, and which of the records with this key it is; records without a "
        "key are found by their content. offset: partition and offset, for a copy that keeps them. hash: all of its "
        "content; a changed record is then one missing and one extra (default: %(default)s)",
    )
    for part, default, help_text in (
        ("headers", True, "whether headers must be equal (default: yes)"),
        ("timestamps", True, "whether timestamps must be equal (default: yes)"),
        ("partitions", False, "whether records must be in the same partition (default: no; with --match offset: yes)"),
    ):
        action = argparse.BooleanOptionalAction
        which.add_argument(f"--compare-{part}", action=action, default=default, help=help_text)
    which.add_argument(
        "--read-committed", action="store_true", help="without records of transactions that are open or aborted"
    )
    where = add_range_arguments(parser)
    where.add_argument(
        "--other-starting-offsets", type=starting_offsets, metavar="earliest|latest|JSON", help="of the other topics"
    )
    where.add_argument("--other-ending-offsets", type=ending_offsets, metavar="latest|JSON", help="of the other topics")
    where.add_argument(
        "--min-partitions", type=positive, metavar="N", help="split large partitions to have at least N tasks"
    )
    report = parser.add_argument_group("what is reported")
    add_report_arguments(report, "differences")
    report.add_argument(
        "--dry-run", action="store_true", help="print what would be compared, up to which offsets, and end"
    )
    add_running_arguments(parser)
    return parser
