"""A folder on any file system that Spark knows: this machine's, HDFS, an object store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


class SparkFolder:
    """A path or URL, looked at through Hadoop's FileSystem."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._path: JavaObject = jvm.org.apache.hadoop.fs.Path(path)
        self._files: JavaObject = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    def is_there(self) -> bool:
        return bool(self._files.exists(self._path))

    def names(self) -> list[str]:
        """The names in the folder; none if it is not there."""
        if not self.is_there():
            return []
        return [status.getPath().getName() for status in self._files.listStatus(self._path)]

    def files(self) -> Iterator[tuple[str, str]]:
        """The name and the path of each file in the folder and below it."""
        if self.is_there():
            found = self._files.listFiles(self._path, True)
            while found.hasNext():
                path = found.next().getPath()
                yield path.getName(), path.toString()

    def remove(self) -> None:
        """Remove it with all that it holds; also a single file."""
        self._files.delete(self._path, True)
