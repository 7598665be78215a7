"""The command line of `sessionize`, checked before a JVM is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_jobs.common.job import RunOptions
from spark_jobs.common.options import (
    add_connection_arguments,
    add_range_arguments,
    add_running_arguments,
    add_trigger_arguments,
    check_written,
    interval_ms,
    job_parser,
    positive,
    run_options_of,
    some_interval_ms,
    topic,
    trigger_ms_of,
)
from spark_jobs.common.stream_source import StreamSource, add_source_arguments, source_of
from spark_jobs.sessions.session_rows import ClickFields

STATE_PARTITIONS = "spark.sql.shuffle.partitions"

DEFAULT_GAP_MS = 30 * 60_000
DEFAULT_WATERMARK_MS = 10 * 60_000
DEFAULT_MAX_AHEAD_MS = 60 * 60_000
DEFAULT_STATE_PARTITIONS = 8
DESCRIPTION = """\
Group the clicks of each user into sessions, and write one JSON record for each session that has ended.
A session ends when its user does not click for --gap; it is written when --watermark more has passed in the clicks'
own time. Clicks that come later than that are dropped and counted.

A value of the input is a JSON object. The key of an output record is the user; its value is
{"session_id", "user", "first_click", "last_click", "duration_ms", "clicks", "entry_page", "exit_page"}.
After a crash, the records of one batch may be written twice: a reader keeps one record for each session_id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """One run of the job."""

    source: StreamSource
    output_topic: str
    checkpoint: str | None  # None: a dry run
    fields: ClickFields
    gap_ms: int
    watermark_ms: int
    trigger_ms: int | None  # None: all that is there now, then end
    dry_run: bool
    run: RunOptions


def parse_options(arguments: Sequence[str] | None = None) -> SessionOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    check_written(parser, args, "--checkpoint")
    source = source_of(parser, args)
    if source.reads(args.output_topic):
        parser.error(f"--output-topic {args.output_topic} is also read: sessions would be taken for clicks")
    run = run_options_of(args)
    return SessionOptions(
        source=source,
        output_topic=args.output_topic,
        checkpoint=args.checkpoint,
        fields=ClickFields(
            user=args.user_field, time=args.time_field, page=args.page_field, max_ahead_ms=args.max_ahead
        ),
        gap_ms=args.gap,
        watermark_ms=args.watermark,
        trigger_ms=trigger_ms_of(args),
        dry_run=args.dry_run,
        run=replace(run, conf=((STATE_PARTITIONS, str(args.state_partitions)), *run.conf)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(
        "sessionize",
        DESCRIPTION,
        "--topic clicks --output-topic sessions --checkpoint ./sessions-checkpoint",
        "--topic clicks --output-topic sessions --gap '15 minutes' --time-field '' --dry-run",
    )
    add_connection_arguments(parser)
    add_source_arguments(parser, "clicks")
    add_range_arguments(parser, ending=False)
    _add_session_arguments(parser.add_argument_group("what a session is"))
    _add_output_arguments(parser.add_argument_group("what is written"))
    add_trigger_arguments(add_running_arguments(parser))
    return parser


def _add_session_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--gap",
        type=some_interval_ms,
        default=DEFAULT_GAP_MS,
        metavar="INTERVAL",
        help="a session ends when its user does not click for so long (default: 30 minutes)",
    )
    group.add_argument(
        "--watermark",
        type=interval_ms,
        default=DEFAULT_WATERMARK_MS,
        metavar="INTERVAL",
        help="wait so long for clicks that come out of order, in the clicks' own time (default: 10 minutes)",
    )
    group.add_argument("--user-field", default="user", metavar="NAME", help="default: %(default)s")
    group.add_argument(
        "--time-field",
        default="time",
        metavar="NAME",
        help="ISO 8601 or epoch ms; '' takes the timestamp of the record (default: %(default)s)",
    )
    group.add_argument("--page-field", default="page", metavar="NAME", help="default: %(default)s")
    group.add_argument(
        "--max-ahead",
        type=interval_ms,
        default=DEFAULT_MAX_AHEAD_MS,
        metavar="INTERVAL",
        help="a click whose time is further after the timestamp of its record is not used: one click from the future "
        "would end all sessions (default: 1 hour)",
    )


def _add_output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--output-topic", type=topic, required=True, metavar="TOPIC", help="for the sessions")
    group.add_argument(
        "--checkpoint", metavar="PATH", help="folder of the job's progress and open sessions, or a URL; not shared"
    )
    group.add_argument(
        "--state-partitions",
        type=positive,
        default=DEFAULT_STATE_PARTITIONS,
        metavar="N",
        help="how many parts the open sessions are kept in; fixed by the first run (default: %(default)s)",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="print sessions of what is in the topics now, and write nothing"
    )
