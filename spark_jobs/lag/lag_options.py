"""The command line of `consumer_lag`, checked before a JVM is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_jobs.common.job import RunOptions
from spark_jobs.common.kafka_options import KafkaConnection
from spark_jobs.common.options import (
    add_connection_arguments,
    add_running_arguments,
    check_written,
    connection_of,
    count,
    job_parser,
    positive,
    run_options_of,
    some_interval_ms,
    topics,
)
from spark_jobs.lag.offset_rows import READ_INTERNAL_TOPICS
from spark_jobs.lag.verdicts import Limits

DEFAULT_TRIGGER_MS = 60_000
DEFAULT_WINDOW_MS = 60 * 60_000
DEFAULT_POINTS = 30
DEFAULT_PLOTS = 20
SETTINGS = (
    (READ_INTERNAL_TOPICS, "true"),
    # Spark's own 200 are for far more data than one row for each partition that a group reads.
    ("spark.sql.shuffle.partitions", "4"),
)
DESCRIPTION = """\
Show the lag of consumer groups: of each partition now, how it changes, and when it will have caught up.
Writes a page (index.html, which needs no other file), plots (PNG) and a history of samples (Parquet).

A group is stalled if it has lag and its committed offset does not move for --stalled-after, falling behind if its lag
rises over --window, catching up if it falls, empty if it has no members. What happened in the window before the job was
started is estimated from the times of commits and records; samples of earlier runs come from the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagOptions:
    """One run of the job."""

    connection: KafkaConnection
    groups: tuple[str, ...]  # empty: all
    topics: tuple[str, ...]  # empty: all
    output: str | None  # None: a dry run
    history: str | None  # None: below the output
    window_ms: int
    points: int
    limits: Limits
    plots: int
    trigger_ms: int
    once: bool
    dry_run: bool
    run: RunOptions


def parse_options(arguments: Sequence[str] | None = None) -> LagOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    check_written(parser, args, "--output")
    run = run_options_of(args)
    return LagOptions(
        connection=connection_of(args),
        groups=tuple(args.group),
        topics=args.topic or (),
        output=args.output,
        history=args.history,
        window_ms=args.window,
        points=args.points,
        limits=Limits(stalled_after_ms=args.stalled_after, tolerance=args.tolerance),
        plots=args.plots,
        trigger_ms=args.trigger,
        once=args.once or args.dry_run,
        dry_run=args.dry_run,
        run=replace(run, conf=(*SETTINGS, *run.conf)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(
        "consumer_lag",
        DESCRIPTION,
        "--once --output ./lag",
        "--group billing --group reports --trigger '30 seconds' --window '2 hours' --output ./lag",
    )
    source = add_connection_arguments(parser)
    source.add_argument("--group", action="append", default=[], metavar="GROUP", help="repeatable (default: all)")
    source.add_argument("--topic", type=topics, metavar="TOPIC,...", help="only these topics (default: all)")
    _add_trend_arguments(parser.add_argument_group("what is said about it"))
    _add_output_arguments(parser.add_argument_group("what is written"))
    running = add_running_arguments(parser)
    pace = running.add_mutually_exclusive_group()
    pace.add_argument(
        "--trigger",
        type=some_interval_ms,
        default=DEFAULT_TRIGGER_MS,
        metavar="INTERVAL",
        help="take a sample this often (default: 1 minute)",
    )
    pace.add_argument("--once", action="store_true", help="take one sample, then end")
    return parser


def _add_trend_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--window",
        type=some_interval_ms,
        default=DEFAULT_WINDOW_MS,
        metavar="INTERVAL",
        help="trends are those of the last hour, or of this time",
    )
    group.add_argument(
        "--points",
        type=positive,
        default=DEFAULT_POINTS,
        metavar="N",
        help="estimate the lag at N times of the window; each of them asks the brokers for an offset of each partition "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--stalled-after",
        type=some_interval_ms,
        default=Limits().stalled_after_ms,
        metavar="INTERVAL",
        help="how long the committed offset may stay (default: 5 minutes)",
    )
    group.add_argument(
        "--tolerance",
        type=count,
        default=Limits().tolerance,
        metavar="N",
        help="a lag of N records is caught up (default: %(default)s)",
    )


def _add_output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--output", metavar="DIR", help="folder of index.html, plots/ and history/, on this machine")
    group.add_argument(
        "--history",
        metavar="PATH",
        help="folder of the samples instead, or a URL: on a cluster, one that all its machines have",
    )
    group.add_argument(
        "--plots",
        type=count,
        default=DEFAULT_PLOTS,
        metavar="N",
        help="plot the N worst groups; the table has all (default: %(default)s)",
    )
    group.add_argument("--dry-run", action="store_true", help="print the table of one sample, and write nothing")
