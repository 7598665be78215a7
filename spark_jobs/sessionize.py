"""Group the clicks of each user into sessions, from topic to topic, with Spark's session windows and watermark.

    python -m spark_jobs.sessionize --topic clicks --output-topic sessions --checkpoint ./sessions-checkpoint

The checkpoint has the offsets that are read and the sessions that are open, so a run goes on where the one before it
ended, however it ended. Spark's kafka sink is at-least-once: a batch that was broken off is written again, with equal
records. A reader of the output keeps one record for each `session_id`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from spark_jobs.common.job import run_job
from spark_jobs.sessions.session_options import parse_options
from spark_jobs.sessions.session_run import check, sessionize


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return run_job(
        "sessionize",
        options.run,
        lambda spark, stop: sessionize(spark, options, stop),
        check=lambda: check(options),
    )


if __name__ == "__main__":
    sys.exit(main())
