"""The file format of the readable transcripts of the coordinators: commands and their output.

A file consists of blocks: a command line, a line of dashes, and the lines of output, up to a blank one. Lines that
begin with # are comments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

RULE = "----"

Run = Callable[[str], list[str]]
"""Executes a command line; the lines of its output."""


def blocks(text: str) -> Iterator[tuple[list[str], str | None, list[str]]]:
    """Prose before a command, the command, and its expected output."""
    prose: list[str] = []
    lines = deque(text.splitlines())
    while lines:
        line = lines.popleft()
        if not line.strip() or line.startswith("#"):
            prose.append(line)
            continue
        expected = []
        if lines and lines[0] == RULE:  # a command that was just written has none yet
            lines.popleft()
            while lines and (output := lines.popleft()).strip():
                expected.append(output)
        yield prose, line, expected
        prose = []
    yield prose, None, []


def rewrite(path: Path, run: Run) -> None:
    """Replace the output in the file by the present output of the commands."""
    out: list[str] = []
    for prose, command, _ in blocks(path.read_text()):
        out += prose
        if command is not None:
            out += [command, RULE, *run(command), ""]
    path.write_text("\n".join(out).rstrip() + "\n")


def check(path: Path, run: Run) -> list[str]:
    """Replay a file; the differences, in words."""
    differences = []
    for _, command, expected in blocks(path.read_text()):
        if command is not None and (got := run(command)) != expected:
            differences.append("\n".join([command, "expected:", *expected, "got:", *got]))
    return differences
