"""The tables of rooms in ARCHITECTURE.md are the layers of the contracts in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.documentation.pages import REPOSITORY

ARCHITECTURE = (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8")
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]


def layers(container: str) -> list[set[str]]:
    """From top to bottom: the modules and packages that the contract allows on each layer."""
    [contract] = [each for each in CONTRACTS if each.get("containers") == [f"odradek.{container}"]]
    return [set(re.split(r" [|:] ", layer)) for layer in contract["layers"]]


def table(container: str) -> Iterator[set[str]]:
    """The rows of the table that begins with the container: the names in the first cell."""
    [rows] = re.findall(rf"^\| in `{container}/` \|.*\n\| --- .*\n((?:\|.*\n)+)", ARCHITECTURE, re.MULTILINE)
    for row in rows.splitlines():
        yield {name.removesuffix(".py").rstrip("/") for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


@pytest.mark.parametrize("container", ["testing", "broker", "storage", "controller"])
def test_rooms_are_the_layers_of_the_contracts(container: str) -> None:
    assert list(table(container)) == layers(container)
