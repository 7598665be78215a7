from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odradek.broker import cli
from odradek.broker.tools import verify
from odradek.broker.tools.command.output import Form, Output
from odradek.broker.tools.verify import FINDINGS_PER_FILE_MAX, FindingsPrinter
from odradek.storage.verification.findings import Finding

CLEAN = Path(__file__).parents[3] / "golden" / "log_directories" / "clean"


def test_files_written_by_apache_have_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main([str(CLEAN)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "1 partitions, 0 findings\n"


def test_findings_are_lines_and_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(CLEAN, tmp_path / "data")
    (tmp_path / "data" / "lost+found").mkdir()
    assert cli.main(["verify", str(tmp_path / "data")]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{tmp_path}/data/lost+found: the name is not <topic>-<partition>")
    assert printed.err == "1 partitions, 1 findings\n"


def test_a_partition_twice_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(CLEAN, tmp_path / "data")
    assert verify.main([str(CLEAN), str(tmp_path / "data")]) == 1
    assert capsys.readouterr().out == (
        f"{tmp_path}/data/captured-0: the partition is also in {CLEAN}: a broker does not start\n"
    )


def test_findings_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(CLEAN, tmp_path / "data")
    (tmp_path / "data" / "lost+found").mkdir()
    assert cli.main(["verify", "--json", str(tmp_path / "data")]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["file"], found["position"]) == (f"{tmp_path}/data/lost+found", None)
    assert found["finding"].startswith("the name is not <topic>-<partition>")


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_path_that_cannot_be_verified_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert verify.main([str(tmp_path / name)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("odradek: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("count", "last"), [(FINDINGS_PER_FILE_MAX, "a:19: x\n"), (FINDINGS_PER_FILE_MAX + 2, "a: 2 more findings\n")]
)
def test_a_file_of_noise_is_cut_short(count: int, last: str, capsys: pytest.CaptureFixture[str]) -> None:
    printer = FindingsPrinter(Output(Form.LINES))
    for position in range(count):
        printer.report(Finding("a", position, "x"))
    printer.report(Finding("b", None, "y"))
    printer.finish()
    assert printer.count == count + 1
    lines = capsys.readouterr().out.splitlines(keepends=True)
    assert "b: y\n" in lines
    assert [line for line in lines if line.startswith("a")][-1] == last
