"""The examples of docs/spark.md: blocks with a command of a job and what it prints."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.apache.jvm import REPOSITORY

PAGE = REPOSITORY / "docs" / "spark.md"
BLOCK = re.compile(r"```console\n\$ (?:\S*/)?python -m spark_jobs\.(\w+) ([^\n]*)\n(.*?)```", re.DOTALL)
RATE = re.compile(r"\d+/s")
"""The one part of the lines that differs from run to run."""

PROGRESS = re.compile(r"restored up to |restoring the first batch|.*: \d+ of \d+ tasks$")
"""How the lines begin that a job prints while it takes long."""


@dataclass(frozen=True, slots=True)
class Example:
    """A command of the page: the arguments of the job, and the lines that it prints."""

    arguments: list[str]
    lines: list[str]

    def arguments_in(self, folder: Path, bootstrap: str) -> list[str]:
        """The arguments for a run whose files are in a folder, with another broker."""
        return ["--bootstrap-servers", bootstrap, *(each.replace("./", f"{folder}/") for each in self.arguments)]


def example_of(job: str) -> Example:
    """The first example of a job."""
    for name, arguments, output in BLOCK.findall(PAGE.read_text("utf-8")):
        if name == job:
            return Example(shlex.split(arguments), [RATE.sub("N/s", line) for line in output.splitlines()])
    raise AssertionError(f"{PAGE} has no example of {job}")


def lines_of_page(output: str, folder: Path, bootstrap: str) -> list[str]:
    """What a run printed, as the page has it: without the lines that only a slow run prints."""
    shown = output.replace(f"{folder}/", "./").replace(bootstrap, "127.0.0.1:9092")
    return [RATE.sub("N/s", line) for line in shown.splitlines() if not PROGRESS.match(line)]
