from __future__ import annotations

import pytest

from odradek.broker.security.sasl.kerberos.krb5_login import LOGIN_MODULE, Krb5Login, client_login, server_login
from odradek.broker.security.sasl.ports import SaslContext
from odradek.storage.config.config_def import ConfigError
from tests.support.in_process.security.sasl_contexts import context

KEYTAB = 'useKeyTab=true keyTab="/k" principal="kafka/host@REALM"'


def of(options: str, service_name: str | None = "kafka", module: str = LOGIN_MODULE) -> SaslContext:
    made = context("GSSAPI", f"{module} required {options};")
    return made._replace(value=lambda name: service_name if name == "sasl.kerberos.service.name" else None)


def test_the_entry_of_a_listener() -> None:
    expected = Krb5Login("kafka/host@REALM", "kafka", True, "/k", False, None)
    assert server_login(of(f"{KEYTAB} storeKey=true")) == expected
    assert server_login(of(KEYTAB.replace("/k", "FILE:/k") + " storeKey=TRUE")) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (KEYTAB, "needs storeKey=true"),
        ('storeKey=true keyTab="/k" principal="a"', "needs useKeyTab=true"),
        ("useKeyTab=true storeKey=true", "needs the principal"),
        ('useKeyTab=true storeKey=true principal="*"', "needs the principal"),
    ],
)
def test_a_listener_needs_its_key(options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        server_login(of(options))


def test_the_name_of_the_service_is_in_one_place_or_the_same_in_both() -> None:
    assert client_login(of(f"{KEYTAB} serviceName=broker", None)).service_name == "broker"
    assert client_login(of(f"{KEYTAB} serviceName=kafka")).service_name == "kafka"
    with pytest.raises(ConfigError, match="Conflicting serviceName values found in JAAS and Kafka configs value in"):
        client_login(of(f"{KEYTAB} serviceName=broker"))
    for read in (client_login, server_login):
        with pytest.raises(ConfigError, match="No serviceName defined in either JAAS or Kafka config"):
            read(of(f"{KEYTAB} storeKey=true", None))


def test_a_client_has_a_keytab_or_a_ticket_cache() -> None:
    assert client_login(of("useTicketCache=true")) == Krb5Login(None, "kafka", False, None, True, None)
    assert client_login(of('useTicketCache=true ticketCache="/c"')).ticket_cache == "/c"
    with pytest.raises(ConfigError, match="asked for a password"):
        client_login(of('principal="a"'))
    with pytest.raises(ConfigError, match="needs the principal"):
        client_login(of("useKeyTab=true"))


def test_another_login_module_is_refused() -> None:
    with pytest.raises(ConfigError, match="which is not supported"):
        server_login(of(KEYTAB, module="com.ibm.security.auth.module.Krb5LoginModule"))
