"""A small pipeline from end to end, against a broker that it starts itself: `make pipeline-demo`.

Clicks are produced, validated, made into sessions and archived, and the lag of two consumer groups becomes a page. Each
step is a command that is printed before it runs. The broker ends with the demo; what was written stays.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from spark_jobs.common.job import JobError, fail, say
from spark_jobs.common.options import key_value, positive
from spark_jobs.demo.child_processes import ChildProcesses
from spark_jobs.demo.pipeline import Pipeline

NAME = "pipeline_demo"
DEFAULT_CLICKS = 5_000
DEFAULT_CONF = (
    "spark.ui.enabled=false",
    "spark.sql.shuffle.partitions=2",
    # Each JVM lives a few seconds: the second compiler would cost more than it gains.
    "spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C: the child processes are ended on the way out
    began_s = time.monotonic()
    try:
        folder = _folder(args.output)
        with ChildProcesses(folder) as children:
            pipeline = Pipeline(children, folder, [*DEFAULT_CONF, *("=".join(setting) for setting in args.conf)])
            pipeline.run(args.clicks)
    except JobError as error:
        return fail(NAME, str(error))
    except KeyboardInterrupt:
        return fail(NAME, "interrupted")
    say(f"done in {time.monotonic() - began_s:.0f} s; the broker has been stopped. Where to look:")
    for line in pipeline.where_to_look():
        say(f"  {line}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Run a small pipeline on a broker of its own: clicks are validated, made into sessions and "
        "archived, and the lag of two consumer groups becomes a page.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output", metavar="DIR", help="an empty or a new folder (default: a new one for temporary files)"
    )
    parser.add_argument(
        "--clicks", type=positive, default=DEFAULT_CLICKS, metavar="N", help="how many clicks (default: %(default)s)"
    )
    parser.add_argument(
        "--conf", type=key_value, action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; repeatable"
    )
    return parser


def _folder(output: str | None) -> Path:
    """The folder of this run. Raises: JobError if it cannot be used."""
    if output is None:
        return Path(tempfile.mkdtemp(prefix="pipeline-demo-"))
    folder = Path(output).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise JobError(f"--output {output} is not empty")
    except OSError as error:
        raise JobError(f"--output {output} cannot be used: {error.strerror}") from None
    return folder


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
