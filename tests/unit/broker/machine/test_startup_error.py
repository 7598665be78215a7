from __future__ import annotations

import pytest

from odradek.broker.machine.startup_error import EXIT_REFUSED, StartupError, refuse


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (StartupError("Cannot read x:\n  no such file"), "odradek: Cannot read x: no such file\n"),
        (OSError(), "odradek: OSError\n"),
    ],
)
def test_a_refusal_is_one_line(error: Exception, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refuse(error) == EXIT_REFUSED == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", line)
