"""The index of Kafka's classes, from the module docstrings: `python -m tests.documentation.kafka_index` writes it.

It stands in ARCHITECTURE.md between two markers; a test compares them. A module docstring names the classes of Kafka
whose work the module does in a sentence that begins with `Kafka:`:

    Kafka: LogSegment, RollParams and LocalLog.splitOverflowedSegment.

Words between the names are allowed ("the deletion predicates of UnifiedLog"). A name with a capital letter is a class.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.documentation.pages import REPOSITORY

PAGE = REPOSITORY / "ARCHITECTURE.md"
BEGIN, END = "<!-- kafka index -->", "<!-- end of kafka index -->"
PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "testing", "timer")
MOST_OF_A_FOLDER = 8
NO_CLASSES = {"Apache", "Jackson", "Java", "Kafka", "Odradek", "Scala", "ZooKeeper"}
"""Names with a capital letter that are products and languages."""

SENTENCE = re.compile(r"(?<!Apache )\bKafka: (.*?)(?:\.(?=\s)|\.?\Z)", re.DOTALL)
NAME = re.compile(r"(?<![\w.])((?:[a-z]+\.)*)([A-Z]\w*[a-z]\w*)(\.\w+)?")
"""A package, a class, and a method or inner class; the first and the last may be missing."""


def index() -> str:
    """A table with a row for each class, sorted."""
    files: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
            for name in kafka_classes(docstring):
                files.setdefault(name, []).append(path.relative_to(REPOSITORY))
    rows = (f"| {name} | {', '.join(places(name, files[name]))} |" for name in sorted(files, key=str.lower))
    return "\n".join(("| Kafka's class | file |", "| --- | --- |", *rows, ""))


def places(name: str, files: list[Path]) -> Iterator[str]:
    """The files of a class: first the one of its name, if there is one; only the number of many others in a folder."""
    own = [file for file in files if file.stem.replace("_", "") == name.lower()]
    yield from (f"`{file}`" for file in own)
    others = [file for file in files if file not in own]
    for folder, group in groupby(others, key=lambda file: file.parent):
        found = list(group)
        if len(found) > MOST_OF_A_FOLDER:
            yield f"{len(found)} {'more ' if own else ''}files in `{folder}/`"
        else:
            yield from (f"`{file}`" for file in found)


def kafka_classes(docstring: str) -> list[str]:
    """The classes that a docstring names behind `Kafka:`, each once, in its order."""
    sentences = (sentence for paragraph in docstring.split("\n\n") for sentence in SENTENCE.findall(paragraph))
    found = (match for sentence in sentences for match in NAME.findall(sentence))
    return list(dict.fromkeys(name for package, name, member in found if package or member or name not in NO_CLASSES))


def written(page: str) -> str:
    """The index as it stands in the page."""
    return page.partition(f"{BEGIN}\n")[2].partition(END)[0]


def with_index(page: str) -> str:
    """The page with the index of now between its markers."""
    before, _, rest = page.partition(f"{BEGIN}\n")
    return f"{before}{BEGIN}\n{index()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_index(PAGE.read_text("utf-8")), "utf-8")
