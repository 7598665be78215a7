"""The written pages, and the names of tests in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "ARCHITECTURE.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def named_tests(text: str) -> Iterator[tuple[str, str | None]]:
    """The test files that a page names by their whole path, each with the function behind `::`, if there is one."""
    for path, function in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", text):
        yield path, function or None


def rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of all tables of a page: the heading above, and the cells without their spaces."""
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif line.startswith("| ") and not line.startswith("| ---"):
            yield heading, [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
