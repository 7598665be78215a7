"""Text on a terminal: no name, key or value moves the cursor, and pipes get what is there."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable

import pytest

from odradek.broker.tools.command.output import Form, Output
from odradek.broker.tools.command.terminal_text import visible, visible_bytes
from odradek.broker.tools.data.consume_options import consume_parser, record_format
from tests.unit.broker.tools.data.records.test_record_format import record

HOSTILE = "a\x1b]0;title\x07\x9b31m\u202e\r\x08b\tc"
SAFE = "a\\x1b]0;title\\x07\\x9b31m\\u202e\\x0d\\x08b\tc"


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def is_terminal(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


def streams(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> io.StringIO:
    """Standard output and error from now on."""
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_codes_stand_for_control_characters() -> None:
    assert visible(HOSTILE) == SAFE
    assert visible("ä\n漢") == "ä\n漢"
    assert visible_bytes(HOSTILE.encode()) == SAFE.encode()
    assert visible_bytes(b"\xff\x9b31m") == b"\xff\\x9b31m"


@pytest.mark.parametrize(
    "write",
    [
        lambda output: output.result((), [HOSTILE]),
        lambda output: output.note(HOSTILE),
        lambda output: output.warn(HOSTILE),
    ],
    ids=["lines", "note", "warning"],
)
def test_output(is_terminal: bool, monkeypatch: pytest.MonkeyPatch, write: Callable[[Output], None]) -> None:
    written = streams(monkeypatch, is_terminal=is_terminal)
    write(Output(Form.LINES))
    assert written.getvalue() == f"{SAFE if is_terminal else HOSTILE}\n"


@pytest.mark.parametrize("form", [Form.TABLE, Form.JSON])
def test_table_and_json(is_terminal: bool, monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    written = streams(monkeypatch, is_terminal=is_terminal)
    output = Output(form)
    output.table([{"group": HOSTILE}], (), title=HOSTILE)
    output.close()
    assert ("\x9b" in written.getvalue()) is not is_terminal


@pytest.mark.parametrize("arguments", [["-f", "%k %s %h\\n"], ["-K", ":"], ["--property", "print.headers=true"]])
def test_consumed_records(is_terminal: bool, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    streams(monkeypatch, is_terminal=is_terminal)
    options: argparse.Namespace = consume_parser().parse_args(["-b", "h:1", "-t", "t", *arguments])
    printed = record_format(options)(record(HOSTILE.encode(), HOSTILE.encode()))
    assert (b"\x1b" in printed) is not is_terminal
