"""The files, folders and classes that the pages name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.pages import PAGES, REPOSITORY

TOP = (
    "broker",
    "controller",
    "coordinator",
    "protocol",
    "storage",
    "testing",
    "timer",
    "tests",
    "spark_jobs",
    "docs",
    "src",
)
KAFKAS_CLASSES = "## Where Kafka's classes are"
"""The heading above the index, whose classes are not ours."""
VARIABLE = re.compile(r"[A-Z]{4,}")
"""Stands for a name that the reader puts in, as in `broker/apis/FAMILY/NAME.py`. A star stands for any name."""


def named_paths(text: str) -> Iterator[str]:
    """What a page puts in backticks with a top-level folder in front, as a file or a folder."""
    for path in re.findall(rf"`((?:{'|'.join(TOP)})/[\w./*-]*)(?:::\w+)?`", text):
        if not VARIABLE.search(path):
            yield path


def named_classes(text: str) -> Iterator[tuple[str, str]]:
    """What a page puts in backticks that looks like a class, each with the attribute behind the dot, or with ""."""
    yield from re.findall(r"`([A-Z]\w*[a-z]\w*)(?:\.(\w+))?`", text)


def test_every_class_that_the_architecture_names_exists() -> None:
    files: dict[str, list[str]] = {}
    for text in (path.read_text("utf-8") for top in TOP for path in (REPOSITORY / top).rglob("*.py") if top != "src"):
        for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
            files.setdefault(name, []).append(text)
    named = set(named_classes((REPOSITORY / "ARCHITECTURE.md").read_text("utf-8").partition(KAFKAS_CLASSES)[0]))
    assert len(named) > 50
    for name, attribute in sorted(named):
        assert name in files, f"there is no class {name}"
        found = not attribute or any(re.search(rf"\b{attribute}\b", text) for text in files[name])
        assert found, f"{name} has no {attribute}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_path_that_a_page_names_exists(path: Path) -> None:
    missing = [name for name in named_paths(path.read_text("utf-8")) if not any(REPOSITORY.glob(name))]
    assert missing == []


def test_classes_are_found() -> None:
    assert list(named_classes("`Connection.begin`, `LogState`, `ACL`, `a.B`")) == [
        ("Connection", "begin"),
        ("LogState", ""),
    ]


def test_paths_are_found() -> None:
    text = (
        "`broker/none.py`, `storage/log/`, `broker/apis/FAMILY/NAME.py`, `tests/x/test_y.py::test_z`, `testing/*_x.py`"
    )
    assert list(named_paths(text + ", `a/b.py`")) == [
        "broker/none.py",
        "storage/log/",
        "tests/x/test_y.py",
        "testing/*_x.py",
    ]
