"""Where a dump goes: lines as Apache's tool prints them, or JSON objects with the names of these lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.tools.command.output import Output


class Rows(Protocol):
    """What is found in the files, one row after the other."""

    is_json: bool

    def write(self, text: str) -> object:
        """A line, or a part of one. JSON leaves it out: it is repeated by rows, or it is for people."""

    def row(self, kind: str, facts: Mapping[str, object]) -> None:
        """A line `name: value name: value`, or an object."""


class TextRows:
    """Lines."""

    is_json = False

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write

    def row(self, kind: str, facts: Mapping[str, object]) -> None:
        self.write(f"{pairs(facts)}\n")


class JsonRows:
    """Objects: `file`, `kind`, and the facts of the line."""

    is_json = True

    def __init__(self, output: Output) -> None:
        self.file = ""
        """The file that is dumped now."""
        self._output = output

    def write(self, text: str) -> None:
        pass

    def row(self, kind: str, facts: Mapping[str, object]) -> None:
        self._output.result(({"file": self.file, "kind": kind, **facts},), ())


def pairs(facts: Mapping[str, object]) -> str:
    return " ".join(f"{name}: {value}" for name, value in facts.items())
