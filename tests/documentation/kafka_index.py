"""The index of Kafka's classes, from the module docstrings: `python -m tests.documentation.kafka_index` prints it.

A module docstring names the classes of Kafka that the module answers to in a sentence that begins with `Kafka:`:

    Kafka: LogSegment, RollParams and LocalLog.splitOverflowedSegment.

Words between the names are allowed ("the deletion predicates of UnifiedLog"). A name with a capital letter is a class.
"""

from __future__ import annotations

import ast
import re
import sys

from tests.documentation.pages import REPOSITORY

PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "timer")
NO_CLASSES = {"Apache", "Jackson", "Java", "Kafka", "Odradek", "Scala", "ZooKeeper"}
"""Names with a capital letter that are products and languages."""

SENTENCE = re.compile(r"(?<!Apache )\bKafka: (.*?)(?:\.(?=\s)|\.?\Z)", re.DOTALL)
NAME = re.compile(r"(?<![\w.])((?:[a-z]+\.)*)([A-Z]\w*[a-z]\w*)")
"""A package, which may be empty, and a class, without its methods and inner classes."""


def index() -> str:
    """A table with a row for each class, sorted."""
    files: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
            for name in kafka_classes(docstring):
                files.setdefault(name, []).append(f"`{path.relative_to(REPOSITORY)}`")
    rows = (f"| {name} | {', '.join(files[name])} |" for name in sorted(files, key=str.lower))
    return "\n".join(("| Kafka's class | file |", "| --- | --- |", *rows, ""))


def kafka_classes(docstring: str) -> list[str]:
    """The classes that a docstring names behind `Kafka:`, each once, in its order."""
    sentences = (sentence for paragraph in docstring.split("\n\n") for sentence in SENTENCE.findall(paragraph))
    found = (match for sentence in sentences for match in NAME.findall(sentence))
    return list(dict.fromkeys(name for package, name in found if package or name not in NO_CLASSES))


if __name__ == "__main__":
    sys.stdout.write(index())
