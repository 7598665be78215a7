from __future__ import annotations

import pytest

from odradek.broker.tools.admin.security.acl_arguments import entries_by_resource, parser, resource_filters, why_refused
from odradek.controller.model.acls import PatternType

TOPIC = ("--topic", "t")
WHO = ("--allow-principal", "User:a")


def entries(*arguments: str) -> dict[str, list[str]]:
    """Type and name of each resource -> operation, permission and host of its entries."""
    found = entries_by_resource(parser().parse_args(["--add", *arguments]))
    return {
        f"{pattern.resource_type.name} {pattern.name}": sorted(
            f"{entry.operation.name} {entry.permission_type.name} {entry.principal} {entry.host}" for entry in of_it
        )
        for pattern, of_it in found.items()
    }


def test_all_operations_from_all_hosts_unless_others_are_named() -> None:
    assert entries(*TOPIC, *WHO) == {"TOPIC t": ["ALL ALLOW User:a *"]}
    assert entries(*TOPIC, *WHO, "--allow-host", "h", "--allow-host", " i", "--operation", "read") == {
        "TOPIC t": ["READ ALLOW User:a h", "READ ALLOW User:a i"]
    }


def test_allowed_and_denied_principals() -> None:
    assert entries("--group", "g", *WHO, "--deny-principal", "User:b", "--deny-host", "h") == {
        "GROUP g": ["ALL ALLOW User:a *", "ALL DENY User:b h"]
    }
    assert entries("--group", "g") == {"GROUP g": []}


def test_roles() -> None:
    producer = ["CREATE ALLOW User:a *", "DESCRIBE ALLOW User:a *", "WRITE ALLOW User:a *"]
    consumer = ["DESCRIBE ALLOW User:a *", "READ ALLOW User:a *"]
    assert entries(*TOPIC, *WHO, "--producer", "--idempotent", "--transactional-id", "x", "--group", "g") == {
        "TOPIC t": producer,
        "TRANSACTIONAL_ID x": producer[1:],
        "CLUSTER kafka-cluster": ["IDEMPOTENT_WRITE ALLOW User:a *"],
    }
    assert entries(*TOPIC, *WHO, "--consumer", "--group", "g") == {"TOPIC t": consumer, "GROUP g": consumer[1:]}
    both = entries(*TOPIC, *WHO, "--consumer", "--producer", "--group", "g")
    assert both["TOPIC t"] == sorted({*producer, *consumer})
    prefixed = entries(*TOPIC, *WHO, "--producer", "--idempotent", "--resource-pattern-type", "PREFIXED")
    assert list(prefixed) == ["TOPIC t", "CLUSTER kafka-cluster"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (WHO, "You must provide at least one resource: --topic <topic> or --cluster"),
        (
            (*TOPIC, "--allow-principal", "alice"),
            "expected a string in format principalType:principalName but got alice",
        ),
        (
            ("--group", "g", *WHO, "--operation", "Write"),
            "ResourceType GROUP only supports operations All, Read, Delete, Describe",
        ),
        ((*TOPIC, *WHO, "--operation", "Fly"), "ResourceType TOPIC only supports operations All, Read, Write"),
    ],
)
def test_entries_that_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entries(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--list --producer", 'Option "[list]" can\'t be used with option "[producer]"'),
        ("--list --deny-host h", 'Option "[list]" can\'t be used with option "[deny-host]"'),
        ("--add --topic t --producer --operation Read", 'Option "[producer]" can\'t be used with option "[operation]"'),
        ("--add --topic t --principal User:a", "The --principal option is only available if --list is set"),
        ("--add --producer", "With --producer you must specify a --topic"),
        ("--add --topic t --idempotent", "The --idempotent option is only available if --producer is set"),
        ("--add --topic t --consumer", "With --consumer you must specify a --topic and a --group and no --cluster"),
        ("--add --topic t --group g --consumer --cluster", "With --consumer you must specify"),
        ("--add --topic t --group g --consumer --producer --cluster", None),
        ("--list --topic t --principal User:a", None),
    ],
)
def test_options_that_exclude_each_other(arguments: str, message: str | None) -> None:
    refusal = why_refused(parser().parse_args(arguments.split()))
    assert (refusal is None) if message is None else (refusal or "").startswith(message)


def test_pattern_types() -> None:
    options = parser().parse_args(
        ["--list", *TOPIC, "--topic", " u ", "--topic", "t", "--resource-pattern-type", "Match"]
    )
    assert [(one.name, one.pattern_type) for one in resource_filters(options)] == [
        ("t", PatternType.MATCH),
        ("u", PatternType.MATCH),
    ]
    with pytest.raises(SystemExit):
        parser().parse_args(["--list", "--resource-pattern-type", "unknown"])
