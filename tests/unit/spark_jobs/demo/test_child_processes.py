"""Commands of the demo as processes: their output, their end, their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.common.job import JobError
from spark_jobs.demo.child_processes import ChildProcesses


def test_a_command_prints_indented_or_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChildProcesses(tmp_path) as children:
        children.run("json.tool", ["--compact"], source='{"a": [1]}')
        children.run("json.tool", ["--compact"], source='{"b": 2}', output=tmp_path / "out")
    assert capsys.readouterr().out.splitlines() == [
        "$ python -m json.tool --compact",
        '    {"a":[1]}',
        "$ python -m json.tool --compact",
    ]
    assert (tmp_path / "out").read_text() == '{"b":2}\n'


def test_a_command_that_fails_ends_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChildProcesses(tmp_path) as children, pytest.raises(JobError, match=r"json\.tool has ended with status 1"):
        children.run("json.tool", [], source="no json")
    assert "Expecting value" in capsys.readouterr().out
