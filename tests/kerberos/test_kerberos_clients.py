"""Clients of a listener with GSSAPI: Apache Kafka's tools, and Odradek's own commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kerberos.conftest import KerberosBroker
from tests.support.kerberos.kdc import Kdc
from tests.support.kerberos.settings import MODULE, client_properties, keytab_jaas
from tests.support.processes.apache.tools import Tools
from tests.support.processes.commands import run_command

pytestmark = pytest.mark.kerberos

PropertiesOf = Callable[[str], str]


def test_tools_of_apache_kafka(broker: KerberosBroker, tools: Tools, properties_of: PropertiesOf) -> None:
    config = properties_of("alice")
    at = ("--bootstrap-server", broker.address)
    tools.run("topics", *at, "--command-config", config, "--create", "--topic", "of-tools", "--partitions", "2")
    tools.run("console-producer", *at, "--producer.config", config, "--topic", "of-tools", stdin=b"one\ntwo\nthree\n")
    which = ("--topic", "of-tools", "--from-beginning", "--max-messages", "3", "--group", "readers")
    read = tools.run("console-consumer", *at, "--consumer.config", config, *which)
    assert sorted(read.lines) == ["one", "three", "two"]
    log = broker.process.log_text()
    assert "authenticationID=alice@EXAMPLE.COM; authorizationID='alice@EXAMPLE.COM'" in log


def test_commands_with_a_keytab(broker: KerberosBroker, properties_of: PropertiesOf) -> None:
    config = ("--command-config", properties_of("alice"))
    run_command(broker.address, "topics", "--create", "--topic", "of-commands", *config)
    run_command(broker.address, "produce", "--topic", "of-commands", *config, stdin=b"one\n")
    consumed = run_command(broker.address, "consume", "--topic", "of-commands", *config, "-o", "beginning", "-e")
    assert b"one" in consumed.stdout


def test_commands_with_a_ticket_cache(
    broker: KerberosBroker, kdc: Kdc, tmp_path: Path, properties_of: PropertiesOf
) -> None:
    cache = tmp_path / "tickets"
    kdc.run("kinit", "-c", str(cache), "-k", "-t", str(kdc.keytab("cached", "alice")), "alice")
    jaas = f'{MODULE} required useTicketCache=true ticketCache="{cache}";'
    config = client_properties(tmp_path / "cache.properties", jaas)
    run_command(broker.address, "topics", "--create", "--topic", "of-cache", "--command-config", config)
    missing = client_properties(tmp_path / "none.properties", jaas.replace(str(cache), f"{cache}-none"))
    refused = run_command(broker.address, "topics", "--list", "--command-config", missing, status=1)
    assert f"{cache}-none" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_users_have_the_names_that_the_rules_give_them(
    broker: KerberosBroker, properties_of: PropertiesOf, tools: Tools
) -> None:
    create = ("--create", "--topic", "of-carol", "--command-config")
    run_command(broker.address, "topics", *create, properties_of("Carol/admin"))
    listed = tools.run(
        "topics", "--bootstrap-server", broker.address, "--command-config", properties_of("bob"), "--list"
    )
    assert listed.lines == [], "User:bob has no rights"


def test_a_principal_that_the_kdc_refuses(
    broker: KerberosBroker, kdc: Kdc, tmp_path: Path, properties_of: PropertiesOf
) -> None:
    kdc.add("expired", options="-expire 2020-01-01")
    jaas = keytab_jaas(kdc.keytab("unknown", "alice"), "nobody")
    for config, message in (
        (properties_of("expired"), "expired"),
        (client_properties(tmp_path / "unknown.properties", jaas), "nobody@EXAMPLE.COM"),
        (
            client_properties(tmp_path / "service.properties", keytab_jaas(kdc.keytab("a", "alice"), "alice"), "none"),
            "not found",
        ),
    ):
        refused = run_command(broker.address, "topics", "--list", "--command-config", config, status=1)
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
