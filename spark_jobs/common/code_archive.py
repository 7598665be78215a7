"""The code of the jobs as one zip: what executors on other machines import.

    python -m spark_jobs.common.code_archive jobs.zip
    spark-submit --py-files jobs.zip spark_jobs/restore_topic.py ...

It holds `spark_jobs` and `odradek`. The libraries that they need must be installed on the machines of the cluster:
compiled modules cannot be imported from a zip.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

CHECKOUT = Path(__file__).resolve().parents[2]
ODRADEK = CHECKOUT / "src" / "odradek"
LEFT_OUT = ("__pycache__", "testing")
SUFFIXES = (".py", ".xml", ".properties", ".typed")
OLDEST_DATE = (1980, 1, 1, 0, 0, 0)
"""Of each entry: the same code gives the same bytes."""


def entries() -> Iterator[tuple[Path, str]]:
    """The files, each with its name in the archive. The packages of `odradek` are links in a checkout."""
    for top, name in ((CHECKOUT / "spark_jobs", "spark_jobs"), (ODRADEK, "odradek")):
        yield from _below(top, name)


def _below(folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in LEFT_OUT:
            yield from _below(path, f"{name}/{path.name}")
        elif path.is_file() and path.suffix in SUFFIXES:
            yield path, f"{name}/{path.name}"


def write_archive(path: Path) -> None:
    """Write the zip. Raises: OSError."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in entries():
            archive.writestr(zipfile.ZipInfo(name, OLDEST_DATE), source.read_bytes(), zipfile.ZIP_DEFLATED)


def send_code(context: SparkContext) -> None:
    """Send the zip to the Python workers of a session, once; not if this module came out of one (`--py-files`)."""
    name = f"spark_jobs-{context.applicationId}.zip"
    if not Path(__file__).is_file() or any(file.endswith(name) for file in context.listFiles):
        return
    archive = Path(context._temp_dir) / name  # Spark removes the folder when the session ends
    write_archive(archive)
    context.addPyFile(str(archive))


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m spark_jobs.common.code_archive FILE.zip", file=sys.stderr)
        return 2
    try:
        write_archive(Path(arguments[0]))
    except OSError as error:
        print(f"code_archive: error: {arguments[0]} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
