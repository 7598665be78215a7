from __future__ import annotations

import argparse

import pytest

from odradek.broker.tools.command.help_format import HelpFormat


@pytest.mark.parametrize(("columns", "widest"), [("60", 58), ("0", 78), ("wide", 78)])
def test_the_help_is_as_wide_as_the_terminal(columns: str, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    parser = argparse.ArgumentParser(prog="test", formatter_class=HelpFormat)
    parser.add_argument("--long", help="word " * 50)
    assert max(map(len, parser.format_help().splitlines())) in range(widest - 5, widest + 1)
