"""A folder that must be new, with a file system in memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spark_jobs.common import new_folder
from spark_jobs.common.job import JobError
from spark_jobs.common.new_folder import check_new, write_new

REFUSED = r"^the output out is there already: name a new folder$"


class FakeFolder:
    """The one folder there is, unless `names` is None."""

    names_there: list[str] | None = None

    def __init__(self, spark: object, path: str) -> None:
        assert path == "out"

    def names(self) -> list[str]:
        return FakeFolder.names_there or []

    def remove(self) -> None:
        FakeFolder.names_there = None


class FakeRows:
    """Rows whose writer refuses a folder that is there, as Spark's does."""

    def __init__(self) -> None:
        self.sparkSession = None
        self.write = SimpleNamespace(format=lambda name: SimpleNamespace(save=lambda path: self._save(name, path)))
        self.written: list[tuple[str, str]] = []

    def _save(self, file_format: str, path: str) -> None:
        assert FakeFolder.names_there is None
        self.written.append((file_format, path))


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_folder, "SparkFolder", FakeFolder)


@pytest.mark.parametrize("names", [None, [], ["_temporary"]])
def test_what_a_run_that_was_cut_off_has_left_is_replaced(
    names: list[str] | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeFolder, "names_there", names)
    check_new(None, "out")  # type: ignore[arg-type]
    assert FakeFolder.names_there == names
    rows = FakeRows()
    write_new(rows, "out", "json")  # type: ignore[arg-type]
    assert rows.written == [("json", "out")]
    assert capsys.readouterr().out == "written: out\n"


@pytest.mark.parametrize("names", [["_SUCCESS"], ["_temporary", "part-0.json"], ["notes.txt"]])
def test_a_folder_that_holds_anything_is_refused(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeFolder, "names_there", names)
    rows = FakeRows()
    with pytest.raises(JobError, match=REFUSED):
        check_new(None, "out")  # type: ignore[arg-type]
    with pytest.raises(JobError, match=REFUSED):
        write_new(rows, "out", "json")  # type: ignore[arg-type]
    assert rows.written == []
    assert FakeFolder.names_there == names
