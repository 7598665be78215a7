"""What every unit test of the broker leaves as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

NAMES = ("asyncio", "kazoo", "odradek.test")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Commands configure logging for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in NAMES}
    names = {number: logging.getLevelName(number) for number in (logging.WARNING, logging.CRITICAL)}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, own in levels.items():
        logging.getLogger(name).setLevel(own)
    for number, level_name in names.items():
        logging.addLevelName(number, level_name)
