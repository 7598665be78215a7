"""Jobs that are cut off: by a full disk, SIGTERM, SIGKILL, or a broker that dies under them; and started again."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException

from spark_jobs.archive.archive_options import parse_options as archive_options
from spark_jobs.archive_topic import archive
from spark_jobs.common.job import message_of
from spark_jobs.common.new_folder import write_new
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.compare_topics import pin
from spark_jobs.comparison import comparison
from spark_jobs.comparison.comparison import DIFFERENT_STATUS, compare
from spark_jobs.comparison.options import parse_options as comparison_options
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.spark.pieces import MARKS, Outgoing, SparkJob, in_order, received, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

JOB_START_LIMIT_S = 60
WRITING_LIMIT_S = 60
RECORDS = 3_000


@contextmanager
def full_disk(spark: SparkSession, full_at_bytes: int = 40_000) -> Iterator[None]:
    """Let each write of the JVM fail that would make a file larger."""
    jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)
    soft, hard = jvm.rlimit(resource.RLIMIT_FSIZE)
    jvm.rlimit(resource.RLIMIT_FSIZE, (full_at_bytes, hard))
    try:
        yield
    finally:
        jvm.rlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("full_at_bytes", "line"),
    [
        (60, "IOException: File too large"),  # a file of the checkpoint
        (40_000, "[TASK_WRITE_FAILED] Task failed while writing rows to file:{output}: File too large"),
    ],
)
def test_an_archive_on_a_full_disk_ends_with_one_line_and_goes_on(
    full_at_bytes: int, line: str, spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("full"), 2)
    sent = send(broker.bootstrap, topic, [Outgoing(value=os.urandom(2_000), partition=n % 2) for n in range(100)])
    output = tmp_path / "archive"
    where = ["--output", str(output), "--checkpoint", str(tmp_path / "checkpoint"), "--compression", "none"]
    options = archive_options(["--bootstrap-servers", broker.bootstrap, "--topic", topic, *where, "--available-now"])
    with full_disk(spark, full_at_bytes), pytest.raises(StreamingQueryException) as failed:
        archive(spark, options, StopRequest())
    assert message_of(failed.value) == line.format(output=output)

    archive(spark, options, StopRequest())
    assert received(spark.read.parquet(str(output))) == in_order(sent)
    # A reader that ignores the list of files sees each record once, too.
    assert spark.read.parquet(*map(str, output.rglob("*.parquet"))).count() == len(sent)


@pytest.fixture
def different(broker: Broker, unique: Callable[[str], str]) -> list[str]:
    """Arguments of a comparison with many differences."""
    topic, other = (Admin(broker.bootstrap).create_topic(unique("cut-off")) for _ in range(2))
    send(broker.bootstrap, topic, [Outgoing(value=b"%d" % n, key=b"%d" % n) for n in range(RECORDS)])
    where = ["--bootstrap-servers", broker.bootstrap, "--topic", topic, "--other-topic", other]
    return [*where, "--show", "0", "--output-format", "json", "--output"]


def test_a_comparison_whose_own_files_do_not_fit_ends_with_one_line(
    spark: SparkSession, different: list[str], tmp_path: Path
) -> None:
    options = comparison_options([*different, str(tmp_path / "differences")])
    ranges = pin(options)
    with full_disk(spark), pytest.raises(Py4JJavaError) as failed:
        compare(spark, options, *ranges, StopRequest())
    assert message_of(failed.value) == "IOException: File too large"


def test_a_comparison_whose_output_does_not_fit_ends_with_one_line_and_is_done_again(
    spark: SparkSession, different: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_on_full_disk(rows: DataFrame, path: str, file_format: str) -> None:
        with full_disk(spark):
            write_new(rows, path, file_format)

    output = tmp_path / "differences"
    options = comparison_options([*different, str(output)])
    ranges = pin(options)
    with monkeypatch.context() as patched:
        patched.setattr(comparison, "write_new", write_on_full_disk)
        with pytest.raises(Py4JJavaError) as failed:
            compare(spark, options, *ranges, StopRequest())
    line = rf"SparkException: \[TASK_WRITE_FAILED\] Task failed while writing rows to file:{output}/\S+: File too large"
    assert re.fullmatch(line, message_of(failed.value)), message_of(failed.value)
    # Spark removes its folder when one task has failed, and a task that still writes then makes it again.
    assert {path.name for path in output.iterdir()} <= {"_temporary"}, "no file of the output is there"

    assert compare(spark, options, *ranges, StopRequest()) == DIFFERENT_STATUS
    assert spark.read.json(str(output)).count() == RECORDS


def test_a_comparison_that_is_killed_while_it_writes_is_done_again(
    spark: SparkSession, different: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "differences"
    job = SparkJob("compare_topics", [*different, str(output), "--master", "local[2]"], tmp_path)
    job.process.start()
    job.process.wait_for_line_in_processor_time(r"^different: ", JOB_START_LIMIT_S)
    deadline = time.monotonic() + WRITING_LIMIT_S
    while not (output / "_temporary").exists():  # for some hundred milliseconds
        assert time.monotonic() < deadline
    job.kill_tree()
    assert [path.name for path in output.iterdir()] == ["_temporary"], "it was killed in the middle"

    options = comparison_options([*different, str(output)])
    assert compare(spark, options, *pin(options), StopRequest()) == DIFFERENT_STATUS
    assert spark.read.json(str(output)).count() == RECORDS
