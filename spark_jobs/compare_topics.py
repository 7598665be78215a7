"""Compare two topics or clusters: which records are missing, extra, changed or in another order.

    .venv/bin/python -m spark_jobs.compare_topics --topic orders --other-bootstrap-servers new-cluster:9092

For a migration, a mirror, a restored archive. The ends of all partitions are looked up first and printed: records that
come later are not compared. Exit status: 0 equal, 3 different, 1 error, 2 wrong command line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError, fail, run_job, say
from spark_jobs.common.reachable import check_reachable
from spark_jobs.comparison.options import NAME, ComparisonOptions, Side, parse_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from spark_jobs.common.streaming_run import StopRequest
    from spark_jobs.comparison.ranges import TopicRange

    PinnedRanges = tuple[list[TopicRange], list[TopicRange]]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    pinned: list[PinnedRanges] = []

    def check() -> None:
        pinned.append(pin(options))

    if options.dry_run:
        try:
            check()
        except JobError as error:
            return fail(NAME, str(error))
        return 0

    def job(spark: SparkSession, stop: StopRequest) -> int:
        from spark_jobs.comparison.comparison import compare

        ours, others = pinned[0]
        return compare(spark, options, ours, others, stop)

    return run_job(NAME, options.run, job, check=check)


def pin(options: ComparisonOptions) -> PinnedRanges:
    """The ranges of both sides. The other side is looked up last: a copy is behind what it copies. Raises: JobError."""
    check_reachable(options.ours.connection.bootstrap_servers)
    check_reachable(options.other.connection.bootstrap_servers, "--other-bootstrap-servers")
    return pin_side(options.ours, options), pin_side(options.other, options)


def pin_side(side: Side, options: ComparisonOptions) -> list[TopicRange]:
    from spark_jobs.comparison.topic_bounds import pinned_ranges

    ranges = pinned_ranges(
        side.connection,
        side.topics,
        begin=side.begin,
        end=side.end,
        starting_timestamp_ms=options.starting_timestamp_ms,
        read_committed=options.read_committed,
    )
    say(f"{side.connection.bootstrap_servers}: {', '.join(each.line() for each in ranges)}")
    return ranges


if __name__ == "__main__":
    sys.exit(main())
