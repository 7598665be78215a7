from __future__ import annotations

import contextlib
import logging
import os

import pytest

from odradek.broker.machine.startup_error import EXIT_REFUSED, StartupError, announce, refuse


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


def test_a_banner_that_cannot_be_written_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    for descriptor, reason in ((writes, "Broken pipe"), (os.open("/dev/full", os.O_WRONLY), "No space left")):
        caplog.clear()
        with open(descriptor, "w") as unwritable, contextlib.redirect_stdout(unwritable):
            announce("Odradek\n")
            unwritable.flush()  # as at the end of the interpreter
        ((_, level, message),) = caplog.record_tuples
        assert level == logging.WARNING
        assert message.startswith("The banner cannot be written to standard output: ")
        assert reason in message


def test_a_banner_of_a_path_that_is_no_text_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with open(os.devnull, "w", encoding="ascii") as ascii_only, contextlib.redirect_stdout(ascii_only):
        announce("data in \udc80\n")
    assert "The banner cannot be written" in caplog.text
