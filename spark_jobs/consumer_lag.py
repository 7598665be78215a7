"""Show the lag of consumer groups: of each partition now, how it changes, and when it will have caught up.

    python -m spark_jobs.consumer_lag --once --output ./lag

What groups have committed is read from `__consumer_offsets` by Spark's kafka source, where the logs end is asked from
the brokers. The job joins no group and commits nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from spark_jobs.common.job import run_job
from spark_jobs.lag.lag_options import parse_options
from spark_jobs.lag.lag_run import check, consumer_lag


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        "consumer_lag",
        options.run,
        lambda spark, stop: consumer_lag(spark, options, stop),
        check=lambda: check(options),
    )


if __name__ == "__main__":
    sys.exit(main())
