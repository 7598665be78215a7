from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from odradek.testing.observations.warning_lines import LINES_MAX, WarningLines

log = logging.getLogger("odradek.test")


@pytest.fixture
def lines() -> Iterator[WarningLines]:
    handler = WarningLines()
    logging.getLogger("odradek").addHandler(handler)
    yield handler
    logging.getLogger("odradek").removeHandler(handler)
    handler.close()


def in_thread(work: threading.Thread) -> None:
    work.start()
    work.join()


def test_warnings_and_errors_are_kept(lines: WarningLines) -> None:
    log.info("nothing")
    log.warning("disk %s is slow", "d")
    try:
        raise OSError("gone")
    except OSError:
        log.exception("failed")
    assert lines.lines == ["WARNING odradek.test: disk d is slow", "ERROR odradek.test: failed: OSError('gone')"]
    lines.clear()
    assert lines.lines == []


def test_a_line_of_another_broker_is_not_ours(lines: WarningLines) -> None:
    other: list[WarningLines] = []

    def log_there() -> None:
        other.append(WarningLines())
        log.warning("there")

    in_thread(threading.Thread(target=log_there))
    assert lines.lines == []
    other[0].close()
    in_thread(threading.Thread(target=lambda: log.warning("a thread without a loop")))
    assert lines.lines == ["WARNING odradek.test: a thread without a loop"]


def test_the_last_lines_are_kept(lines: WarningLines) -> None:
    for number in range(LINES_MAX + 1):
        log.warning("%d", number)
    assert len(lines.lines) == LINES_MAX
    assert lines.lines[0].endswith(": 1")


def test_without_another_handler_warnings_go_to_stderr_once(
    lines: WarningLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    last_resort = logging.Handler()
    last_resort.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]
    monkeypatch.setattr(logging, "lastResort", last_resort)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    second = WarningLines()
    logging.getLogger("odradek").addHandler(second)
    log.warning("seen")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])
    log.warning("a handler of the program has it")
    logging.getLogger("odradek").removeHandler(second)
    second.close()
    assert written == ["seen"]
    assert len(lines.lines) == len(second.lines) == 2
