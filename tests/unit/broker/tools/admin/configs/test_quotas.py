from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.configs.quotas import main
from tests.support.clusters.admin_cluster import Command
from tests.support.clusters.admin_quotas import AdminQuotas


@pytest.fixture(autouse=True)
def some_quotas(quotas: AdminQuotas) -> None:
    quotas.entries = [
        ({"user": "u"}, {"producer_byte_rate": 1e7, "consumer_byte_rate": 1.0}),
        ({"user": "u", "client-id": None}, {"request_percentage": 50.0}),
        ({"ip": "::1"}, {"connection_creation_rate": 5.0}),
    ]


def test_all_quotas_are_printed(command: Command) -> None:
    status, lines, _ = command(main)
    assert status == 0
    assert [[cell.strip() for cell in line.split("\t")[:-1]] for line in lines] == [
        ["User", "Client", "Ip", "Quota", "Value"],
        ["-", "-", "::1", "connection_creation_rate", "5.0"],
        ["u", "*", "-", "request_percentage", "50.0"],
        ["u", "-", "-", "consumer_byte_rate", "1.0"],
        ["u", "-", "-", "producer_byte_rate", "1.0E7"],
    ]


def test_those_of_an_entity_are_printed(command: Command) -> None:
    rows = json.loads("".join(command(main, "--user", "u", "--default-client", "--json")[1]))
    assert rows == [{"user": "u", "client": "*", "ip": None, "quota": "request_percentage", "value": 50.0}]
    assert len(command(main, "--user", "u")[1]) == 4


def test_quotas_are_set_and_removed(command: Command, quotas: AdminQuotas) -> None:
    _, lines, _ = command(main, "--user", "u", "--default-client", "--set", "produce=1024", "request_percentage=5")
    assert lines == ["Completed updating quotas of user-principal 'u', the default client-id."]
    command(main, "--ip", "::1", "--remove", "connections")
    assert quotas.altered == [
        ({"user": "u", "client-id": None}, {"producer_byte_rate": 1024.0, "request_percentage": 5.0}),
        ({"ip": "::1"}, {"connection_creation_rate": None}),
    ]


@pytest.mark.parametrize("arguments", [["--user", "u", "--set", "produce"], ["--user", "u", "--set", "produce=x"]])
def test_values_that_are_not_valid_are_refused(arguments: list[str], command: Command, quotas: AdminQuotas) -> None:
    assert command(main, *arguments)[0] == 1
    assert quotas.altered == []


@pytest.mark.parametrize("arguments", [["--set", "produce=1"], ["--user", "u", "--default-user"]])
def test_an_entity_is_needed_and_named_once(arguments: list[str], command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(main, *arguments)
