"""The table of threads in ARCHITECTURE.md has each thread with a name, and the module that starts it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.documentation.pages import REPOSITORY, rows

PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "testing", "timer")


def threads() -> Iterator[tuple[str, str]]:
    """The name of each thread, without what differs from one to the next, and the module."""
    for path in (path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")):
        text = path.read_text("utf-8")
        if "Thread(" not in text:
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            names = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
            if names and ast.unparse(call.func).endswith("Thread"):
                name = re.split(r"[{']", ast.unparse(names[0]).removeprefix("f").removeprefix("'"))[0]
                yield name, str(path.relative_to(REPOSITORY))


def test_every_thread_is_in_the_table() -> None:
    table = [cells for _, cells in rows((REPOSITORY / "ARCHITECTURE.md").read_text("utf-8")) if len(cells) == 3]
    found = list(threads())
    assert len(found) > 5
    for name, module in found:
        assert any(f"`{name}" in cells[0] and f"`{module}`" in cells[2] for cells in table), f"{module} starts {name}"
