"""Makes the zip that executors import: the Spark jobs, and the packages of Odradek that they use.

    python -m spark_jobs.package odradek-spark.zip
    spark-submit --py-files odradek-spark.zip ...

`register` of `spark_jobs.kafka_log` sends the same zip to the workers of a session that has none.

On each machine of the cluster, the Python of the executors needs pyarrow, and crc32c and cramjam for checksums and for
compressed records: compiled modules cannot be imported from a zip.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "timer")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that equal sources make equal zips."""


def write_package(target: Path) -> None:
    """Write the zip. Raises OSError."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_sources()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)


def add_package(context: SparkContext) -> None:
    """Send the zip to the Python workers of a session, once; not if this module came out of one (--py-files)."""
    name = f"spark_jobs-{context.applicationId}.zip"
    if not Path(__file__).is_file() or any(file.endswith(name) for file in context.listFiles):
        return
    target = Path(context._temp_dir) / name
    write_package(target)
    context.addPyFile(str(target))


def _sources() -> Iterator[tuple[str, Path]]:
    """The names in the zip, and the files."""
    import odradek

    jobs = Path(__file__).resolve().parent
    library = Path(odradek.__file__).resolve().parent
    yield "odradek/__init__.py", library / "__init__.py"
    roots = [("spark_jobs", jobs), *((f"odradek/{name}", (library / name).resolve()) for name in PACKAGES)]
    for prefix, root in roots:
        for path in root.rglob("*.py"):
            yield f"{prefix}/{path.relative_to(root).as_posix()}", path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="package", description="Write the zip with the Spark jobs for --py-files of spark-submit."
    )
    parser.add_argument("zip", metavar="OUT.zip", type=Path, help="the file to write")
    target = parser.parse_args(arguments).zip
    try:
        write_package(target)
    except OSError as error:
        print(f"package: error: {target} cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"{target}: {target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
