"""The loggers that the pages name exist, and each name of Apache Kafka's leads to a logger that writes lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.machine.log_setup import AUTHORIZER_LOGGER
from odradek.broker.machine.logger_levels import KAFKA_LOGGERS, LEVELS, LoggerLevels
from tests.documentation.pages import PAGES, REPOSITORY

PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "timer")
OF_LIBRARIES = {"kazoo"}


def named_loggers(text: str) -> Iterator[str]:
    """What stands before `=LEVEL`, and the names in dots in backticks of the paragraphs that speak of loggers."""
    yield from re.findall(rf"([\w.]+)=(?:{'|'.join(LEVELS)})\b", text)
    for paragraph in re.split(r"\n\n|\n(?=\|)", text):
        if "logger" in paragraph:
            yield from re.findall(r"`((?:odradek|kafka|state)\.[\w.]+)`", paragraph)


@pytest.fixture(scope="module")
def written() -> set[str]:
    """The loggers of the code."""
    found = set()
    for path in (path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")):
        text = path.read_text("utf-8")
        if "getLogger(" not in text:
            continue
        module = ".".join(("odradek", *path.relative_to(REPOSITORY).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger" and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant) or ast.unparse(name) == "__name__":
                    found.add(str(name.value) if isinstance(name, ast.Constant) else module)
    return found


def is_written(name: str, written: set[str]) -> bool:
    return any(f"{each}.".startswith(f"{name}.") for each in written)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_logger_that_a_page_names_writes_lines(path: Path, written: set[str]) -> None:
    levels = LoggerLevels()
    for name in named_loggers(path.read_text("utf-8")):
        is_known = is_written(name, written) or levels.exists(name) or name == AUTHORIZER_LOGGER
        assert is_known, f"{path.name} names the logger {name}"


def test_every_name_of_apache_kafka_leads_to_a_logger_that_writes_lines(written: set[str]) -> None:
    for name, target in KAFKA_LOGGERS.items():
        assert target in OF_LIBRARIES or is_written(target, written), f"{name} stands for {target}"


def test_names_are_found() -> None:
    text = "A logger: `odradek.a.b`, `odradek.c`, `x.py`.\n\n`kafka.server.X`\n\n--add-config kafka.log=DEBUG acks=1"
    assert list(named_loggers(text)) == ["kafka.log", "odradek.a.b", "odradek.c"]
    pages = {name for path in PAGES for name in named_loggers(path.read_text("utf-8"))}
    assert {"odradek.coordinator.group", "kafka.request.logger", "kafka.log.LogCleaner"} <= pages
