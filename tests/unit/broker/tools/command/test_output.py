from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest

from odradek.broker.tools.command.output import Form, Output, cell_text

ROWS = [{"topic": "t", "log_end": 12, "lag": None}, {"topic": "longer", "log_end": 3, "lag": 4}]
LINES = ["t 12 -", "longer 3 4"]


def test_lines_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(Form.LINES)
    out.table(iter(ROWS), LINES)
    out.note("done")
    out.close()
    assert capsys.readouterr().out.splitlines() == [*LINES, "done"]


def test_a_table_has_no_colours_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(Form.TABLE)
    out.table(ROWS, ["not read"], title="Topics")
    out.table([], ["not read"])
    out.close()
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["Topics", "TOPIC   LOG END  LAG", "t            12    -", "longer        3    4"]


def test_all_rows_are_one_array_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(Form.JSON)
    out.table(ROWS[:1], LINES)
    out.note("for people")
    out.result(ROWS[1:], LINES)
    out.close()
    printed = capsys.readouterr()
    assert json.loads(printed.out) == ROWS
    assert printed.err == "for people\n"


def test_no_rows_are_an_empty_array_and_a_document_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    Output(Form.JSON).close()
    assert json.loads(capsys.readouterr().out) == []
    out = Output(Form.JSON)
    out.document({"a": ["ä"]}, ["not read"])
    out.close()
    assert capsys.readouterr().out == '{"a": ["ä"]}\n'


def test_the_form_is_that_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    def form(*, json: bool = False, table: bool = False) -> Form:
        return Output.of(argparse.Namespace(json=json, table=table)).form

    assert (form(), form(table=True), form(json=True)) == (Form.LINES, Form.TABLE, Form.JSON)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert (form(), form(json=True)) == (Form.TABLE, Form.JSON)


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(Form.LINES).progress("Working", 2) as advance:
        advance(2)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_table_and_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    out = Output.of(argparse.Namespace(json=False, table=False))
    with out.progress("Working", 2) as advance:
        advance(1)
        advance(1)
    with out.progress("Printing", 2, prints=True) as advance:
        advance(1)
        out.table(ROWS, ["not read"])
    out.close()
    printed = capsys.readouterr()
    assert "Printing" not in printed.err
    assert "Working" in printed.err
    assert "2/2" in printed.err
    assert "longer" in printed.out
    assert "not read" not in printed.out


def test_values_in_a_table() -> None:
    values = [None, True, False, [1, "a"], {"a": 1, "b": None}, 1.5]
    assert [cell_text(value) for value in values] == ["-", "yes", "no", "1,a", "a=1, b=-", "1.5"]


def test_the_library_for_tables_is_not_imported_for_lines() -> None:
    source = (
        "import sys; from odradek.broker.tools.command.output import *; out = Output(Form.LINES)\n"
        "out.table([], ['line']); out.close(); assert not {'rich', 'json'} & {*sys.modules}"
    )
    assert subprocess.run([sys.executable, "-c", source], check=True, capture_output=True).stdout == b"line\n"
