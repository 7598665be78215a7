"""The command line of the demo, and what it refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.pipeline_demo import main


@pytest.fixture(autouse=True)
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)


def test_a_folder_with_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").touch()
    assert main(["--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"pipeline_demo: error: --output {tmp_path} is not empty\n"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["--output", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"pipeline_demo: error: --output {tmp_path / 'file'} cannot be used: File exists"
    ]


@pytest.mark.parametrize("arguments", [["--clicks", "0"], ["--conf", "x"], ["more"]])
def test_a_wrong_command_line_has_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
