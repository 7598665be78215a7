"""The examples of docs/faults.md are run as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.faults.rules.rule_texts import ACTIONS, rule_of
from odradek.broker.faults.rules.rules import Rule
from odradek.broker.faults.rules.shorthands import SHORTHANDS
from odradek.broker.faults.rules.yaml_file import rules_of
from odradek.testing import Broker

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "faults.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def examples() -> Iterator[Callable[[Broker], None]]:
    for block in blocks("python"):
        names: dict[str, object] = {}
        exec(compile(block, "docs/faults.md", "exec"), names)
        if "Cluster" not in names:  # test_cluster_scenarios.py
            yield from (value for name, value in names.items() if name.startswith("test_") and callable(value))


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.__name__)
def test_an_example(example: Callable[[Broker], None], shared: Broker) -> None:
    shared.reset()
    example(shared)


def test_the_file_can_be_read() -> None:
    (block,) = blocks("yaml")
    assert all(isinstance(rule, Rule) for rule in rules_of(block, "docs/faults.md"))


def test_the_page_names_every_action_and_every_shorthand() -> None:
    missing = [name for name in (*ACTIONS, *SHORTHANDS) if f"`{name}`" not in PAGE]
    assert missing == []


def test_the_rule_of_the_curl_example_can_be_read() -> None:
    (text,) = re.findall(r"-d '(\{.*?\})'", PAGE)
    assert isinstance(rule_of(json.loads(text)), Rule)
