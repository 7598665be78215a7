from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.topics.topics import main
from tests.support.clusters.admin_cluster import Command

pytestmark = pytest.mark.usefixtures("some_topics")


def test_names_are_listed_in_order(command: Command) -> None:
    assert command(main, "--list") == (0, ["__consumer_offsets", "a", "b"], "")
    assert command(main, "--list", "--exclude-internal")[1] == ["a", "b"]
    assert command(main, "--list", "--topic", "a,__.*")[1] == ["__consumer_offsets", "a"]
    assert command(main, "--list", "--topic", "'a, b'")[1] == ["a", "b"]
    assert json.loads("".join(command(main, "--list", "--topic", "a", "--json")[1])) == [{"topic": "a"}]


@pytest.mark.parametrize("action", ["--describe", "--delete", "--alter"])
def test_no_such_topic(command: Command, action: str) -> None:
    more = ("--partitions", "2") if action == "--alter" else ()
    status, _, error = command(main, action, "--topic", "nope", *more)
    assert (status, error) == (1, "odradek: Topic 'nope' does not exist as expected\n")
    assert command(main, action, "--topic", "nope", "--if-exists", *more) == (0, [], "")


@pytest.mark.parametrize("expression", ["[", "a{9999999999}"])
def test_an_expression_that_cannot_be_compiled(command: Command, expression: str) -> None:
    status, _, error = command(main, "--list", "--topic", expression)
    assert status == 1
    assert error.startswith(f"odradek: --topic {expression} is no regular expression: ")
