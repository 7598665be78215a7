"""The options of `balance_partitions`: its command line, checked before a JVM is started."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.common.job import RunOptions
from spark_jobs.common.kafka_options import KafkaConnection
from spark_jobs.common.options import (
    add_connection_arguments,
    add_running_arguments,
    connection_of,
    count,
    job_parser,
    positive,
    run_options_of,
    topics,
)

NAME = "balance_partitions"
BYTES, RATE = "bytes", "rate"
HEAVIEST_KEYS = 3
TOLERANCE_PERCENT = 5
SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
DESCRIPTION = """\
Report bytes, records, rates and compression of every partition and broker from the brokers' log directories, and which
keys are the heaviest. Then plan which replicas to move so that the brokers' loads come closer, as a file for
`odradek reassign` and kafka-reassign-partitions. Nothing is moved by this job."""
EXAMPLES = (
    "--log-dirs /disks/broker-0,/disks/broker-1,/disks/broker-2 --output plan.json",
    "--log-dirs /snapshots/broker-0,/snapshots/broker-1 --report-only",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceOptions:
    """One run of the job."""

    log_dirs: str
    topics: tuple[str, ...]  # empty: all
    connection: KafkaConnection | None  # None: a report without a plan
    balance_by: str
    max_moved_bytes: int | None
    max_moves: int | None
    tolerance: float
    heaviest_keys: int
    output: str | None
    dry_run: bool
    run: RunOptions

    def source_options(self, **options: str) -> dict[str, str]:
        """The options of the data source kafka_log."""
        # What the replicas of a live cluster hold now, not up to what their last checkpoints say.
        options["beyondHighWatermark"] = "true"
        if self.topics:
            options["topic"] = ",".join(self.topics)
        return options


def parse_options(arguments: Sequence[str] | None = None) -> BalanceOptions:
    """Read a command line. An error in it ends the process with status 2 and one line, as argparse does."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.report_only and args.output is not None:
        parser.error("--output is the file of the plan: not with --report-only")
    return BalanceOptions(
        log_dirs=args.log_dirs,
        topics=args.topic or (),
        connection=None if args.report_only else connection_of(args),
        balance_by=args.balance_by,
        max_moved_bytes=args.max_moved_bytes,
        max_moves=args.max_moves,
        tolerance=args.tolerance / 100,
        heaviest_keys=args.heaviest_keys,
        output=args.output,
        dry_run=args.dry_run,
        run=run_options_of(args),
    )


def _parser() -> argparse.ArgumentParser:
    parser = job_parser(NAME, DESCRIPTION, *EXAMPLES)
    what = parser.add_argument_group("what is read")
    what.add_argument(
        "--log-dirs",
        required=True,
        metavar="DIR,...",
        help="log directories of the brokers, or copies of them; meta.properties in each says whose it is. Of a "
        "partition whose replicas are in several, one is enough for the plan",
    )
    what.add_argument(
        "--topic", type=topics, metavar="TOPIC,...", help="only these topics, also in the loads (default: all)"
    )
    what.add_argument(
        "--heaviest-keys",
        type=count,
        default=HEAVIEST_KEYS,
        metavar="N",
        help="the N keys of each topic with the most bytes; 0: none (default: %(default)s)",
    )
    cluster = add_connection_arguments(parser)
    cluster.add_argument(
        "--report-only",
        action="store_true",
        help="ask no cluster and make no plan. (A plan needs the replicas of each partition, and the racks)",
    )
    plan = parser.add_argument_group("the plan")
    plan.add_argument(
        "--balance-by",
        choices=(BYTES, RATE),
        default=BYTES,
        help="what the brokers should have equal shares of: bytes on disk, or bytes a second (default: %(default)s)",
    )
    plan.add_argument(
        "--max-moved-bytes", type=size, metavar="SIZE", help="copy at most so much, such as 50GB (default: no limit)"
    )
    plan.add_argument("--max-moves", type=positive, metavar="N", help="move at most N replicas (default: no limit)")
    plan.add_argument(
        "--tolerance",
        type=count,
        default=TOLERANCE_PERCENT,
        metavar="PERCENT",
        help="stop planning when no broker is more than this above the mean (default: %(default)s)",
    )
    plan.add_argument("--output", metavar="FILE", help="write the plan here (default: print it)")
    plan.add_argument("--dry-run", action="store_true", help="print the plan, and do not write --output")
    add_running_arguments(parser)
    return parser


def size(text: str) -> int:
    """Bytes, from such as `50GB`; units are powers of 1024."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 500MB")
    return int(found[1]) * SIZE_UNITS[found[2].upper()]
