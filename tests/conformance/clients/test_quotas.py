"""kafka-configs for the quotas of clients, users, addresses and defaults: what it prints on either kind of broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.broker import Broker
from tests.support.processes.apache.tools import ToolResult, Tools

pytestmark = pytest.mark.oracle

Run = Callable[..., ToolResult]

CLIENT = ("--entity-type", "clients", "--entity-name", "app")
USER_CLIENT = ("--entity-type", "users", "--entity-name", "a@b", *CLIENT)
DEFAULTS = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-default")
IP = ("--entity-type", "ips", "--entity-name", "127.0.0.9")

CHANGES = {
    CLIENT: ("producer_byte_rate=1000,consumer_byte_rate=2000", "Completed updating config for client app."),
    USER_CLIENT: ("request_percentage=12.5,controller_mutation_rate=3", "Completed updating config for user a@b."),
    DEFAULTS: ("consumer_byte_rate=123456789", "Completed updating default config for users in the cluster."),
    IP: ("connection_creation_rate=7", "Completed updating config for ip 127.0.0.9."),
    ("--ip-defaults",): (
        "connection_creation_rate=9999",
        "Completed updating default config for ips in the cluster.",
    ),
}


@pytest.fixture
def run(new_broker: Callable[..., Broker], tools: Tools) -> Run:
    broker = new_broker()
    return lambda *arguments, **options: tools.run(
        "configs", "--bootstrap-server", broker.bootstrap, *arguments, **options
    )


def test_quotas_are_set_described_and_removed(run: Run) -> None:
    for entity, (configs, printed) in CHANGES.items():
        assert run("--alter", *entity, "--add-config", configs).lines == [printed]
    assert run("--describe", *CLIENT).lines == [
        "Quota configs for client-id 'app' are consumer_byte_rate=2000.0, producer_byte_rate=1000.0"
    ]
    assert sorted(run("--describe", "--entity-type", "users", "--entity-type", "clients").lines) == [
        "Quota configs for the default user-principal, the default client-id are consumer_byte_rate=1.23456789E8",
        "Quota configs for user-principal 'a@b', client-id 'app' are controller_mutation_rate=3.0, "
        "request_percentage=12.5",
    ]
    assert sorted(run("--describe", "--entity-type", "ips").lines) == [
        "Quota configs for ip '127.0.0.9' are connection_creation_rate=7.0",
        "Quota configs for the default ip are connection_creation_rate=9999.0",
    ]
    refused = run("--alter", *CLIENT, "--add-config", "producer_byte_rate=1.5", status=1)
    assert "InvalidRequestException: Configuration producer_byte_rate must be a LONG value" in refused.stderr
    run("--alter", *USER_CLIENT, "--delete-config", "request_percentage,controller_mutation_rate")
    run("--alter", *CLIENT, "--delete-config", "producer_byte_rate")
    assert run("--describe", *CLIENT).lines == ["Quota configs for client-id 'app' are consumer_byte_rate=2000.0"]
    assert run("--describe", *USER_CLIENT).lines == []
