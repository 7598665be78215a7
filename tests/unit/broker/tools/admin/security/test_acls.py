from __future__ import annotations

import io
import json

import pytest

from odradek.broker.tools.admin.security.acls import main
from tests.support.acls.authorizers import DENY, PREFIXED, WRITE, binding
from tests.support.clusters.admin_acls import AdminAcls
from tests.support.clusters.admin_cluster import Command

PATTERN = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
READS = "(principal=User:a, host=*, operation=READ, permissionType=ALLOW)"
DENIED = "(principal=User:a, host=*, operation=WRITE, permissionType=DENY)"


@pytest.fixture(autouse=True)
def some_acls(acls: AdminAcls) -> None:
    acls.bindings = {binding(), binding(operation=WRITE, permission=DENY), binding("u", pattern_type=PREFIXED)}


def test_all_are_listed(command: Command) -> None:
    other = PATTERN.replace("name=t", "name=u").replace("LITERAL", "PREFIXED")
    status, lines, _ = command(main, "--list")
    assert status == 0
    assert lines == [
        f"Current ACLs for resource `{PATTERN}`: ",
        f" \t{READS}",
        f"\t{DENIED} ",
        "",
        f"Current ACLs for resource `{other}`: ",
        f" \t{READS} ",
        "",
    ]
    rows = json.loads("".join(command(main, "--list", "--topic", "t", "--json")[1]))
    assert rows[1] == {
        "resource_type": "Topic",
        "name": "t",
        "pattern_type": "literal",
        "principal": "User:a",
        "host": "*",
        "operation": "Write",
        "permission": "Deny",
    }


def test_those_of_principals_are_listed(command: Command) -> None:
    lines = command(main, "--list", "--topic", "t", "--principal", "User:b", "--principal", "User:a")[1]
    assert lines[:3] == ["ACLs for principal `User:b`", "ACLs for principal `User:a`", lines[2]]
    assert lines[2] == f"Current ACLs for resource `{PATTERN}`: "


def test_acls_are_added(command: Command, acls: AdminAcls) -> None:
    acls.bindings.clear()
    status, lines, _ = command(main, "--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Read")
    assert (status, lines) == (0, [f"Adding ACLs for resource `{PATTERN}`: ", f" \t{READS} ", ""])
    assert acls.bindings == {binding()}


def test_acls_are_removed_after_a_question(command: Command, acls: AdminAcls, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ("--remove", "--topic", "t", "--allow-principal", "User:a", "--operation", "Read")
    for answer, left in (("n\n", 3), ("Y\n", 2)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert command(main, *one)[1] == [
            "Are you sure you want to remove ACLs: ",
            f" \t{READS} ",
            f" from resource filter `{PATTERN}`? (y/n)",
        ]
        assert len(acls.bindings) == left
    monkeypatch.setattr("sys.stdin", io.StringIO("y"))
    question = f"Are you sure you want to delete all ACLs for resource filter `{PATTERN}`? (y/n)"
    assert command(main, "--remove", "--topic", "t")[1] == [question]
    assert [left.pattern.name for left in acls.bindings] == ["u"]
    assert command(main, "--remove", "--topic", "u", "--resource-pattern-type", "any", "--force")[:2] == (0, [])
    assert acls.bindings == set()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--add --topic t", "You must specify one of: --allow-principal, --deny-principal"),
        (
            "--add --topic t --allow-principal User:a --resource-pattern-type match",
            "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls.",
        ),
        ("--remove", "You must provide at least one resource"),
        ("--list --principal alice", "expected a string in format principalType:principalName"),
        ("--topic t", "one of the arguments --list --add --remove is required"),
    ],
)
def test_wrong_arguments(command: Command, arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(main, *arguments.split())
    assert message in capsys.readouterr().err
