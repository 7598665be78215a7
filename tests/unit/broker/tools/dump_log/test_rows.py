from __future__ import annotations

import json

import pytest

from odradek.broker.tools.command.output import Form, Output
from odradek.broker.tools.dump_log.rows import JsonRows, TextRows, pairs


def test_a_line_has_names_and_values() -> None:
    lines: list[str] = []
    rows = TextRows(lines.append)
    rows.row("entry", {"offset": 1, "position": 70})
    rows.write("text")
    assert lines == ["offset: 1 position: 70\n", "text"]
    assert pairs({}) == ""


def test_json_has_the_file_and_the_kind_and_leaves_text_out(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(Form.JSON)
    rows = JsonRows(output)
    rows.file = "a.index"
    rows.write("text")
    rows.row("entry", {"offset": 1})
    rows.file = "b.index"
    rows.row("entry", {"offset": 2})
    output.close()
    assert json.loads(capsys.readouterr().out) == [
        {"file": "a.index", "kind": "entry", "offset": 1},
        {"file": "b.index", "kind": "entry", "offset": 2},
    ]
