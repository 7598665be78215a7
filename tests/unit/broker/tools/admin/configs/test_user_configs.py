from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.configs.configs import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.support.clusters.admin_cluster import AdminCluster, Command
from tests.support.clusters.admin_quotas import AdminQuotas


@pytest.fixture(autouse=True)
def some_quotas(quotas: AdminQuotas) -> None:
    quotas.entries = [
        ({"user": "alice"}, {"producer_byte_rate": 1000.0, "request_percentage": 12345678.0}),
        ({"user": None}, {"producer_byte_rate": 5.0}),
        ({"user": "alice", "client-id": None}, {"consumer_byte_rate": 0.5}),
        ({"ip": "10.0.0.7"}, {"connection_creation_rate": 5.0}),
    ]
    quotas.has_user("alice")
    quotas.has_user("bob", mechanism=2)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            ["--user", "alice"],
            [
                "Quota configs for user-principal 'alice' are "
                "producer_byte_rate=1000.0, request_percentage=1.2345678E7",
                "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192",
            ],
        ),
        (["--user-defaults"], ["Quota configs for the default user-principal are producer_byte_rate=5.0"]),
        (
            ["--user", "alice", "--client-defaults"],
            ["Quota configs for user-principal 'alice', the default client-id are consumer_byte_rate=0.5"],
        ),
        (
            ["--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients"],
            ["Quota configs for user-principal 'alice', the default client-id are consumer_byte_rate=0.5"],
        ),
        (["--entity-type", "ips"], ["Quota configs for ip '10.0.0.7' are connection_creation_rate=5.0"]),
        (["--client", "nobody"], []),
    ],
)
def test_quotas_and_credentials_are_described(arguments: list[str], lines: list[str], command: Command) -> None:
    assert command(main, "--describe", *arguments) == (0, lines, "")


def test_all_users_are_described(command: Command, quotas: AdminQuotas) -> None:
    quotas.has_user("carol", error=ErrorCode.UNKNOWN_SERVER_ERROR)
    quotas.has_user("dave", error=ErrorCode.RESOURCE_NOT_FOUND)
    status, lines, error = command(main, "--describe", "--entity-type", "users")
    assert (status, len(lines)) == (0, 4)
    assert lines[-1] == "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=8192"
    assert error.startswith("Error retrieving SCRAM credential configs for user-principal 'carol': ")
    rows = json.loads("".join(command(main, "--describe", "--user", "alice", "--json")[1]))
    assert rows[0] == {
        "entity": {"user": "alice"},
        "quotas": {"producer_byte_rate": 1000.0, "request_percentage": 12345678.0},
    }
    assert rows[1]["scram_iterations"] == {"SCRAM-SHA-256": 8192}


def test_quotas_are_set_and_deleted(command: Command, quotas: AdminQuotas) -> None:
    changes = ("--add-config", "consumer_byte_rate=2.5", "--delete-config", "producer_byte_rate")
    assert command(main, "--alter", "--user", "alice", *changes)[:2] == (
        0,
        ["Completed updating config for user alice."],
    )
    assert command(main, "--alter", "--ip-defaults", "--add-config", "connection_creation_rate=7")[1] == [
        "Completed updating default config for ips in the cluster."
    ]
    command(main, "--alter", "--client-defaults", "--user", "u", "--add-config", "request_percentage=1")
    assert quotas.altered == [
        ({"user": "alice"}, {"consumer_byte_rate": 2.5, "producer_byte_rate": None}),
        ({"ip": None}, {"connection_creation_rate": 7.0}),
        ({"user": "u", "client-id": None}, {"request_percentage": 1.0}),
    ]


def test_credentials_are_set_and_deleted(command: Command, quotas: AdminQuotas, cluster: AdminCluster) -> None:
    changes = ("--add-config", "SCRAM-SHA-512=[password=p]", "--delete-config", "SCRAM-SHA-256")
    assert command(main, "--alter", "--user", "alice", *changes)[0] == 0
    ((broker_id, request),) = cluster.requests(AlterUserScramCredentialsRequest)
    assert (broker_id, request.upsertions[0].mechanism, request.deletions[0].mechanism) == (2, 2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user", "u", "--add-config", "nope=1"], "Only quota and SCRAM credential configs"),
        (["--client", "c", "--add-config", "SCRAM-SHA-256=[password=p]"], "Only quota configs"),
        (["--ip", "::1", "--add-config", "producer_byte_rate=1"], "Only connection quota configs"),
        (["--user-defaults", "--add-config", "SCRAM-SHA-256=[password=p]"], "The use of --entity-default"),
        (["--user", "u", "--add-config", "SCRAM-SHA-256=[password=p],producer_byte_rate=1"], "Cannot alter both"),
        (["--user", "u", "--add-config", "producer_byte_rate=fast"], "Cannot parse quota configuration value"),
        (["--user", "u", "--delete-config", "producer_byte_rate"], "Invalid config(s): producer_byte_rate"),
    ],
)
def test_configs_that_an_entity_does_not_have_are_refused(
    arguments: list[str], message: str, command: Command, quotas: AdminQuotas
) -> None:
    status, _, error = command(main, "--alter", *arguments)
    assert (status, error.startswith(f"odradek: {message}")) == (1, True)
    assert quotas.altered == []
