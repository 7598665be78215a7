"""The output of a command, in one of three forms.

- lines: the text of Apache's tool, without colours. The form when stdout is not a terminal.
- table: for people. The form on a terminal, and with `--table`. The library `rich` draws it; only this module and the
  screen of `odradek top` import it.
- JSON: for programs, with `--json`: one array with an object for each row, or one object.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from odradek.broker.tools.command.terminal_text import visible, write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rich.console import Console


class Form(Enum):
    """The form of the output."""

    LINES = "lines"
    TABLE = "table"
    JSON = "json"


class Output:
    """Prints what a command has found or done."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._rows = 0
        self._is_document = False

    @classmethod
    def of(cls, options: argparse.Namespace) -> Output:
        """For the options of `add_output_options`."""
        if options.json:
            return cls(Form.JSON)
        return cls(Form.TABLE if options.table or sys.stdout.isatty() else Form.LINES)

    @classmethod
    def in_lines(cls, *, is_json: bool) -> Output:
        """For a command that has no tables."""
        return cls(Form.JSON if is_json else Form.LINES)

    def table(self, rows: Iterable[Mapping[str, object]], lines: Iterable[str], *, title: str = "") -> None:
        """Facts: a table on a terminal, else lines. Only the iterable of the form is read, so both may be generators.

        A row has facts by name, in the order of the columns: texts, numbers, bool, None, and lists and dicts of these.
        All rows have the same names. The title stands above the table.
        """
        if self.form is Form.TABLE:
            self._draw(rows, title)
        else:
            self.result(rows, lines)

    def result(self, rows: Iterable[Mapping[str, object]], lines: Iterable[str]) -> None:
        """What a command has done: lines, also on a terminal. Calls with `--json` make one array of all their rows."""
        if self.form is Form.JSON:
            self._write_rows(rows)
        else:
            for line in lines:
                write(sys.stdout, f"{line}\n")

    def document(self, value: Mapping[str, object], lines: Iterable[str]) -> None:
        """Facts that are no rows: one JSON object, else lines. A command calls this once, and nothing else."""
        if self.form is Form.JSON:
            self._is_document = True
            sys.stdout.write(f"{_json(value)}\n")
        else:
            self.result((), lines)

    def note(self, text: str) -> None:
        """A line for people that is no result: on stderr with `--json`, else on stdout."""
        stream = sys.stderr if self.form is Form.JSON else sys.stdout
        write(stream, f"{text}\n")
        stream.flush()

    def warn(self, text: str) -> None:
        """A line on stderr, after what is on stdout."""
        sys.stdout.flush()
        write(sys.stderr, f"{text}\n")

    @property
    def is_json(self) -> bool:
        return self.form is Form.JSON

    @property
    def is_table(self) -> bool:
        return self.form is Form.TABLE

    @contextmanager
    def progress(self, what: str, total: int, *, prints: bool = False) -> Iterator[Callable[[int], None]]:
        """Progress of long work on stderr, if that is a terminal. Yields a function that adds to what is done.

        `prints`: the work prints on stdout meanwhile. On the same terminal its lines and the progress would overwrite
        each other; the lines show the progress then.
        """
        if not sys.stderr.isatty() or (prints and sys.stdout.isatty()):
            yield lambda done: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield lambda done: progress.advance(task, done)

    def close(self) -> None:
        """Ends the JSON array."""
        if self.form is Form.JSON and not self._is_document:
            sys.stdout.write("\n]\n" if self._rows else "[]\n")
        sys.stdout.flush()

    def _write_rows(self, rows: Iterable[Mapping[str, object]]) -> None:
        for row in rows:
            sys.stdout.write(f"{',' if self._rows else '['}\n{_json(row)}")
            self._rows += 1

    def _draw(self, rows: Iterable[Mapping[str, object]], title: str) -> None:
        from rich.table import Table
        from rich.text import Text

        found = list(rows)
        if title:
            write(sys.stdout, f"{title}\n")
        if not found:
            return
        drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for name in found[0]:
            is_number = all(row[name] is None or type(row[name]) in (int, float) for row in found)
            drawn.add_column(name.replace("_", " ").upper(), justify="right" if is_number else "left", overflow="fold")
        for row in found:
            drawn.add_row(*(Text(visible(cell_text(value))) for value in row.values()))
        _console().print(drawn)


def written(command: Callable[[], int]) -> int:
    """Run a command, and write out what it has printed. A closed output pipe (`| head`) is no error.

    Returns the exit status. If the output cannot be written, that is one line on stderr and a status that is not 0.
    """
    status = 0
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        status = 0
    except OSError as error:
        if status == 0:  # else the command has said why it failed
            sys.stderr.write(f"odradek: {error}\n")
            status = 1
    else:
        return status
    from odradek.broker.machine.startup_error import drop_output

    drop_output()
    return status


def _console() -> Console:
    from rich.console import Console

    # Without a terminal a table is as wide as its contents.
    return Console() if sys.stdout.isatty() else Console(width=10_000)


def cell_text(value: object) -> str:
    """A value in a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(cell_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={cell_text(found)}" for key, found in value.items())
    return str(value)


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=sys.stdout.isatty())
