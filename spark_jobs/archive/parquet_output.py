"""The folder that a streaming query writes Parquet to, and its checkpoint: their check, and the files left behind.

Spark's file sink writes the files of a batch under names of their own and then, in one step, the list of them into
`_spark_metadata`. Spark itself reads only listed files, so each record once. A run that was killed within a batch
leaves files that are in no list. A reader that ignores `_spark_metadata` (DuckDB, pandas, a copy) would read them, too:
they are removed here, so that it also sees each record once.

They can be removed when a later batch is listed: each batch is listed once, by the first run that finishes it. Files
that were there before the checkpoint's latest batch was looked up belong to it or to earlier ones. Once that batch is
listed, no run can list them any more, not even one that was only taken for dead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError
from spark_jobs.common.spark_folder import SparkFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINK_LOG = "_spark_metadata"
BATCH_FILE = re.compile(r"(\d+)(?:\.compact)?")
NO_BATCH = -1


class OutputError(JobError):
    """The output cannot be used with this checkpoint; the message is one line."""


def check_pair(*, output: str, checkpoint: str, listed: int, planned: int, has_sink_log: bool, has_data: bool) -> None:
    """Refuse an output and a checkpoint of different jobs: Spark would accept them, and skip batches as already done.

    `listed` is the last batch in the output's list, `planned` the last one that the checkpoint has offsets for.
    A batch is planned, then listed, then the next one is planned.
    """
    if has_data and not has_sink_log:
        raise OutputError(f"the output {output} holds files that no such job wrote: choose an empty folder")
    if listed in (planned, planned - 1):
        return
    if planned == NO_BATCH:
        raise OutputError(f"the output {output} was written with another checkpoint than {checkpoint}, which is empty")
    raise OutputError(
        f"the output {output} ends with batch {listed} and the checkpoint {checkpoint} with batch {planned}: "
        "they are not of the same job"
    )


def last_batch(names: Iterable[str]) -> int:
    """The highest batch number among the file names of a Spark log folder (`12`, or `9.compact`)."""
    return max((int(found[1]) for name in names if (found := BATCH_FILE.fullmatch(name))), default=NO_BATCH)


class ParquetOutput:
    """An output folder and its checkpoint, on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, output: str, checkpoint: str) -> None:
        self._spark = spark
        self._output = output
        self._checkpoint = checkpoint
        self._planned = NO_BATCH
        self._suspects: dict[str, str] = {}  # name -> path

    def open(self) -> None:
        """Check both before the query starts, and note the files that may have been left behind."""
        found = SparkFolder(self._spark, self._output).files()  # before the checkpoint is looked at: see above
        self._suspects = {name: path for name, path in found if name.endswith(".parquet")}
        self.batch_listed(self.check())

    def check(self) -> int:
        """Refuse what is not a pair. Returns the last batch in the output's list."""
        names = SparkFolder(self._spark, self._output).names()
        self._planned = last_batch(SparkFolder(self._spark, f"{self._checkpoint}/offsets").names())
        listed = last_batch(SparkFolder(self._spark, f"{self._output}/{SINK_LOG}").names())
        check_pair(
            output=self._output,
            checkpoint=self._checkpoint,
            listed=listed,
            planned=self._planned,
            has_sink_log=SINK_LOG in names,
            has_data=any(not name.startswith(("_", ".")) for name in names),
        )
        return listed

    def planned_offsets(self) -> dict[str, dict[str, int]]:
        """Where the last batch that the checkpoint has planned ends, by topic and partition; {} for a new one."""
        if self._planned == NO_BATCH:
            return {}
        lines = self._spark.read.text(f"{self._checkpoint}/offsets/{self._planned}").collect()
        offsets: dict[str, dict[str, int]] = json.loads(lines[-1].value)
        return offsets

    def batch_listed(self, number: int) -> None:
        """A batch is in the output's list: remove, once, what earlier runs left behind up to the batch they died in."""
        if not self._suspects or number < self._planned:
            return
        for name in self._suspects.keys() - self._listed_files():
            SparkFolder(self._spark, self._suspects[name]).remove()
        self._suspects = {}

    def _listed_files(self) -> set[str]:
        """The names of the files in the output's list; Spark makes them unique."""
        frame = self._spark.read.schema("value BINARY").parquet(self._output)
        return {path.rpartition("/")[2] for path in frame.inputFiles()}
