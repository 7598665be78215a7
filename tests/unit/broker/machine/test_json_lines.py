"""The log as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from odradek.broker.machine.line_limit import LINE_CHARACTERS_MAX
from odradek.broker.machine.log_setup import JSON, configure_logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form=JSON)
    logger = logging.getLogger("odradek.test")
    logger.info("[KafkaServer id=%d] started", 0)
    logger.warning('"quoted"\nforged \u2028 line')
    first, second = printed(capsys)
    assert first.keys() == {"time", "level", "logger", "message"}
    assert (first["level"], first["logger"], first["message"]) == ("INFO", "odradek.test", "[KafkaServer id=0] started")
    assert (second["level"], second["message"]) == ("WARN", '"quoted"\nforged \u2028 line')


def test_time_is_utc(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form=JSON)
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "m", (), None)
    record.created = 1_700_000_000.1234
    logging.root.handle(record)
    assert printed(capsys)[0]["time"] == "2023-11-14T22:13:20.123Z"


def test_traceback_is_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form=JSON)
    try:
        raise KeyError("missing")
    except KeyError:
        logging.getLogger("odradek.test").exception("bug")
    (line,) = printed(capsys)
    assert line["message"] == "bug"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("KeyError: 'missing'")


def test_length_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form=JSON)
    logging.getLogger("odradek.test").error("x" * 10 * LINE_CHARACTERS_MAX)
    (line,) = printed(capsys)
    assert len(line["message"]) < LINE_CHARACTERS_MAX + 50
