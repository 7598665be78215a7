"""The options of `audit_compaction`: its command line, checked before a JVM is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.common.job import RunOptions
from spark_jobs.common.options import (
    add_running_arguments,
    job_parser,
    run_options_of,
    topics,
)
from spark_jobs.common.report_options import ReportOptions, add_report_arguments, report_of

NAME = "audit_compaction"
DESCRIPTION = """\
Look into the log directories of compacted topics: how many records compaction could still remove, and how many
tombstones there are. With --before, check that compaction has kept the latest record of every key: find lost keys, and
stale or changed values.

exit status: 0 nothing is wrong, 3 something is, 1 error, 2 wrong command line"""
EXAMPLES = (
    "--log-dirs /var/lib/kafka/data --topic users",
    "--log-dirs /var/lib/kafka/data --topic users --save-snapshot ./before",
    "--log-dirs /var/lib/kafka/data --topic users --before ./before",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """One run of the job."""

    log_dirs: str
    topics: tuple[str, ...]
    before: str | None  # a snapshot, or log directories
    save_snapshot: str | None
    report: ReportOptions
    dry_run: bool
    run: RunOptions

    def source_options(self) -> dict[str, str]:
        """The options of the data source kafka_log, before and after alike."""
        # Compaction drops records of aborted transactions. The checkpoint of high watermarks may be older than it.
        options = {"isolationLevel": "read_committed", "beyondHighWatermark": "true"}
        return options | {"topic": ",".join(self.topics)}


def parse_options(arguments: Sequence[str] | None = None) -> AuditOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.output is not None and args.before is None:
        parser.error("--output writes what is found with --before")
    return AuditOptions(
        log_dirs=args.log_dirs,
        topics=args.topic,
        before=args.before,
        save_snapshot=args.save_snapshot,
        report=report_of(args),
        dry_run=args.dry_run,
        run=run_options_of(args),
    )


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(NAME, DESCRIPTION, *EXAMPLES)
    what = parser.add_argument_group("what is read")
    what.add_argument(
        "--log-dirs", required=True, metavar="DIR,...", help="log directories of a broker, live or not, or copies"
    )
    what.add_argument("--topic", type=topics, required=True, metavar="TOPIC,...", help="the compacted topics")
    what.add_argument(
        "--before",
        metavar="PATH",
        help="what --log-dirs is compared with: a snapshot of --save-snapshot, or a copy of the log directories "
        "(several with commas), taken before the compaction",
    )
    report = parser.add_argument_group("what is reported and written")
    report.add_argument(
        "--save-snapshot",
        metavar="PATH",
        help="write the latest record of each key (key, offset, hash of the value; no values) into this folder, which "
        "must be new: for --before of a later run",
    )
    add_report_arguments(report, "findings")
    report.add_argument("--dry-run", action="store_true", help="print the report, and write nothing")
    add_running_arguments(parser)
    return parser
