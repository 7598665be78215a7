"""The zip for executors: it holds what the jobs import, and is the same for the same code."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_jobs.common.code_archive import main


def test_the_code_can_be_imported_from_the_archive_alone(tmp_path: Path) -> None:
    archive = tmp_path / "jobs.zip"
    assert main([str(archive)]) == 0
    names = zipfile.ZipFile(archive).namelist()
    assert {"spark_jobs/archive_topic.py", "spark_jobs/common/pom.xml", "odradek/protocol/framing.py"} <= set(names)
    assert len(names) == len(set(names))
    assert not [name for name in names if "__pycache__" in name or name.startswith("odradek/testing")]
    modules = (
        "spark_jobs.archive.restore_writer",
        "spark_jobs.kafka_log.segment_reader",
        "spark_jobs.kafka_log.stream_offsets",
        "odradek.protocol.records.batch",
    )
    code = f"import sys; sys.path.insert(0, {str(archive)!r})\n"
    code += "".join(f"import {module}\nprint({module}.__file__)\n" for module in modules)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert all(line.startswith(str(archive)) for line in done.stdout.splitlines())


def test_the_same_code_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        assert main([str(tmp_path / name)]) == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none" / "jobs.zip")]) == 1
    assert capsys.readouterr().err.startswith(
        f"code_archive: error: {tmp_path}/none/jobs.zip cannot be written: No such"
    )
    assert main([]) == 2
