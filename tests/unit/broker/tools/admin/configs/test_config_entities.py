from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from odradek.broker.tools.admin.configs.config_entities import configs_to_add, entities_of
from odradek.broker.tools.admin.configs.configs import parser
from odradek.broker.tools.command.failures import CommandFailed


def options(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "types", "names"),
    [
        (["--entity-type", "topics"], ["topics"], []),
        (["--topic", "t"], ["topics"], ["t"]),
        (["--broker-defaults"], ["brokers"], [""]),
        (["--broker", "-1"], ["brokers"], ["-1"]),
        (
            ["--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "c"],
            ["users", "clients"],
            ["", "c"],
        ),
        (["--entity-type", "clients", "--entity-name", "c", "--entity-type", "users"], ["clients", "users"], ["c"]),
        (["--user", "u", "--client-defaults"], ["users", "clients"], ["u", ""]),
    ],
)
def test_entities(arguments: list[str], types: list[str], names: list[str]) -> None:
    assert entities_of(options("--describe", *arguments)) == (types, names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--describe"], "At least one entity type must be specified"),
        (["--describe", "--entity-type", "queues"], "Invalid entity type queues"),
        (["--describe", "--entity-type", "users", "--entity-type", "users"], "Duplicate entity type"),
        (["--describe", "--topic", "t", "--user", "u"], "may be specified together"),
        (["--describe", "--entity-type", "topics", "--topic", "t"], "should not be used in conjunction"),
        (["--describe", "--entity-type", "topics", "--entity-name", "a", "--entity-name", "b"], "More entity names"),
        (["--describe", "--broker", "one"], "must be a valid integer broker id"),
        (["--describe", "--entity-type", "broker-loggers"], "an entity name must be specified with --describe"),
        (["--describe", "--entity-type", "topics", "--entity-default"], "topics have no default"),
        (["--alter", "--entity-type", "topics"], "an entity name must be specified with --alter of topics"),
        (["--alter", "--entity-type", "ips"], "an entity-name or default entity must be specified"),
        (["--alter", "--user", "u", "--entity-type", "clients"], "should not be used in conjunction"),
        (
            ["--alter", "--entity-type", "users", "--entity-name", "u", "--entity-type", "clients"],
            "An entity name must be specified for every entity type",
        ),
    ],
)
def test_entities_that_do_not_go_together_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        entities_of(options(*arguments))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=[x,y],c=", {"a": "1", "b": "x,y", "c": ""}),
        (" a = 1 , b = 2,,", {"a": "1", "b": "2"}),
        ("SCRAM-SHA-256=[iterations=8192,password=p=q]", {"SCRAM-SHA-256": "iterations=8192,password=p=q"}),
    ],
)
def test_configs_to_add(text: str, expected: dict[str, str]) -> None:
    assert configs_to_add(text, None) == expected


def test_configs_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "configs.properties"
    file.write_text("a=1,2\n")
    assert configs_to_add(None, str(file)) == {"a": "1,2"}
    assert configs_to_add(None, None) == {}
    with pytest.raises(CommandFailed, match="Only one of"):
        configs_to_add("a=1", str(file))


@pytest.mark.parametrize("text", ["a", "a=1,b", "a=1=2", "a b=1", "a=1,,b=2"])
def test_configs_that_are_not_valid_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="Invalid"):
        configs_to_add(text, None)
