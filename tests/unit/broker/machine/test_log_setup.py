from __future__ import annotations

import logging
import re

import pytest

from odradek.broker.machine.log_setup import configure_logging, muted


def test_line_has_the_form_of_apache_kafkas(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    logging.getLogger("odradek.test").info("[KafkaServer id=%d] started", 0)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] INFO \[KafkaServer id=0\] started \(odradek\.test\)\n", err
    )


def test_levels_have_log4js_names(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("DEBUG")
    logger = logging.getLogger("odradek.test")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        logger.log(level, "x")
    names = re.findall(r"\] ([A-Z]+) x", capsys.readouterr().err)
    assert names == ["DEBUG", "INFO", "WARN", "ERROR", "FATAL"]


def test_lines_below_the_level_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("ERROR")
    logging.getLogger("odradek.test").warning("quiet")
    logging.getLogger("odradek.test").error("loud")
    err = capsys.readouterr().err
    assert "loud" in err
    assert "quiet" not in err


@pytest.mark.parametrize("forged", ["\n[2026-01-01 00:00:00,000] ERROR forged", "\r\nforged", "\rforged"])
def test_message_cannot_forge_a_line(forged: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    logging.getLogger("odradek.test").info("client id %s", f"x{forged}")
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\r" not in err
    assert repr(forged)[1:-1] in err


@pytest.mark.parametrize("char", ["\0", "\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\v", "\f"])
def test_message_cannot_command_a_terminal(char: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    logging.getLogger("odradek.test").info("mechanism %s", f"a\tä{char}[2K")
    err = capsys.readouterr().err
    assert char not in err
    assert f"a\tä{char.encode('unicode_escape').decode()}[2K" in err


def test_traceback_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    try:
        raise KeyError("missing")
    except KeyError:
        logging.getLogger("odradek.test").exception("bug")
    lines = capsys.readouterr().err.splitlines()
    assert "ERROR bug" in lines[0]
    assert lines[-1] == "KeyError: 'missing'"


def test_configuring_again_does_not_print_twice(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    configure_logging()
    logging.getLogger("odradek.test").info("once")
    assert capsys.readouterr().err.count("once") == 1


@pytest.mark.parametrize("library", ["asyncio", "kazoo"])
def test_libraries_tell_their_troubles_only(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("DEBUG")
    logging.getLogger(library).info("chatter")
    logging.getLogger(library).warning("trouble")
    err = capsys.readouterr().err
    assert "trouble" in err
    assert "chatter" not in err


def test_a_library_is_muted_for_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    log = logging.getLogger("kazoo.client")
    with muted("kazoo"):
        log.error("unheard")
    log.error("heard")
    printed = capsys.readouterr().err
    assert "unheard" not in printed
    assert "ERROR heard" in printed
