"""The pages are true: tests and pages that they name exist, log lines that they quote occur."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.pages import PAGES, REPOSITORY, named_tests, rows

SOURCES = ("broker", "controller", "coordinator", "protocol", "storage", "testing", "timer")


def page(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_test_that_a_page_names_exists(path: Path) -> None:
    for name, function in named_tests(path.read_text("utf-8")):
        file = REPOSITORY / name
        assert file.is_file(), f"{path.name} names {name}"
        if function is not None:
            pattern = rf"^ *(?:async )?def {function}\("
            assert re.search(pattern, file.read_text("utf-8"), re.MULTILINE), f"{path.name} names {name}::{function}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_between_pages_leads_somewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)(?:#([^)]+))?\)", text):
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{path.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {anchor_of(heading) for heading in headings}, f"{path.name} links to {target}#{anchor}"


def anchor_of(heading: str) -> str:
    """The anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_difference_has_a_test() -> None:
    differences = [cells for _, cells in rows(page("docs/differences.md")) if cells[0] != "what"]
    assert len(differences) > 40
    for cells in differences:
        assert len(cells) == 5, cells[0]
        assert any(named_tests(cells[4])), f"{cells[0]}: no test"


def strings() -> Iterator[str]:
    """The texts in the code, joined as the compiler joins them."""
    for package in SOURCES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_every_log_line_that_is_explained_occurs() -> None:
    """In docs/operations.md a line is quoted with `…` for what differs each time."""
    quoted = [
        line
        for heading, cells in rows(page("docs/operations.md"))
        if heading == "Troubleshooting" and cells[0] != "log line"
        for line in re.findall(r"`([^`]+)`", cells[0])
    ]
    assert len(quoted) > 20
    texts = "\n".join(strings())
    for line in quoted:
        for part in line.split("…"):
            assert part.strip() in texts, f"no log line has {part.strip()!r}"


def test_every_kip_that_the_code_names_is_in_the_table() -> None:
    table = [cells for _, cells in rows(page("docs/kips.md")) if cells[0].startswith("KIP-")]
    listed = [int(cells[0].removeprefix("KIP-")) for cells in table]
    assert listed == sorted(set(listed)), "in order, each once"
    assert {cells[2] for cells in table} == {"yes", "partly", "no"}
    named = {
        int(number)
        for package in SOURCES
        for path in (REPOSITORY / package).rglob("*.py")
        for number in re.findall(r"KIP-(\d+)", path.read_text("utf-8"))
    }
    assert named - set(listed) == set()
