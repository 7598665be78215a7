from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_jobs.package import main, write_package

IMPORTED = "spark_jobs.kafka_log.segment_reader, spark_jobs.kafka_log.stream_offsets"


def test_the_zip_has_what_an_executor_imports(tmp_path: Path) -> None:
    """Nothing of the checkout: another directory, and no installed `odradek`."""
    target = tmp_path / "jobs.zip"
    write_package(target)
    script = f"""
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.path[:] = [{str(target)!r}, *(path for path in sys.path if "odradek" not in path)]
import {IMPORTED}
import odradek.protocol
print(odradek.__file__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == f"{target}/odradek/__init__.py", done.stderr


def test_equal_sources_make_equal_zips(tmp_path: Path) -> None:
    write_package(tmp_path / "a")
    write_package(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert {"odradek/__init__.py", "spark_jobs/kafka_log/source.py"} <= set(names)
    assert not [name for name in names if not name.endswith(".py") or name.startswith("odradek/testing")]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "jobs.zip")]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/jobs.zip: ")
    assert main([str(tmp_path / "nowhere" / "jobs.zip")]) == 1
    line = f"package: error: {tmp_path}/nowhere/jobs.zip cannot be written: No such file or directory\n"
    assert capsys.readouterr().err == line
