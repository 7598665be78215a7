"""The files and folders that the pages name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.pages import PAGES, REPOSITORY

TOP = ("broker", "controller", "coordinator", "protocol", "storage", "timer", "tests", "spark_jobs", "docs", "src")
VARIABLE = re.compile(r"[A-Z]{4,}|\*")
"""Stands for a name that the reader puts in, as in `broker/apis/FAMILY/NAME.py`."""


def named_paths(text: str) -> Iterator[str]:
    """What a page puts in backticks with a top-level folder in front, as a file or a folder."""
    for path in re.findall(rf"`((?:{'|'.join(TOP)})/[\w./*-]*)(?:::\w+)?`", text):
        if not VARIABLE.search(path):
            yield path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_path_that_a_page_names_exists(path: Path) -> None:
    missing = [name for name in named_paths(path.read_text("utf-8")) if not (REPOSITORY / name).exists()]
    assert missing == []


def test_paths_are_found() -> None:
    text = "`broker/none.py`, `storage/log/`, `broker/apis/FAMILY/NAME.py`, `tests/x/test_y.py::test_z`, `a/b.py`"
    assert list(named_paths(text)) == ["broker/none.py", "storage/log/", "tests/x/test_y.py"]
