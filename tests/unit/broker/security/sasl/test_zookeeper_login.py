"""The login to ZooKeeper by keys of the broker; `tests/kerberos` uses it with a KDC."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.zookeeper_config import SASL_JAAS_CONFIG, SASL_PASSWORD, SASL_USERNAME
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.sasl.kerberos import gssapi
from odradek.broker.security.sasl.kerberos.krb5_login import LOGIN_MODULE, Krb5Login
from odradek.broker.security.sasl.zookeeper_login import DIGEST_MODULE, zookeeper_sasl
from odradek.controller.tree.zookeeper_settings import ZooKeeperSasl
from tests.support.in_process.security.scripted_contexts import ScriptedContext, ScriptedLibrary

BY_PASSWORD = {SASL_USERNAME: "kafka", SASL_PASSWORD: "canary"}
DIGEST = f'{DIGEST_MODULE} required username="kafka" password="canary";'
KERBEROS = f'{LOGIN_MODULE} required useKeyTab=true keyTab="/k" principal="kafka/h@R"'


@pytest.fixture(autouse=True)
def _puresasl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puresasl", ModuleType("puresasl"))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ScriptedLibrary:
    one = ScriptedLibrary(ScriptedContext([b"hello"], is_client=True))
    monkeypatch.setattr(gssapi, "_library", lambda: one)
    return one


def sasl(keys: dict[str, str]) -> ZooKeeperSasl | None:
    return zookeeper_sasl(BrokerConfig({"zookeeper.connect": "zk:2181", **keys}))


def test_no_key_asks_for_it() -> None:
    assert sasl({}) is None


@pytest.mark.parametrize("keys", [BY_PASSWORD, {SASL_JAAS_CONFIG: DIGEST}])
def test_a_user_with_a_password(keys: dict[str, str]) -> None:
    assert sasl(keys) == {"mechanism": "DIGEST-MD5", "username": "kafka", "password": "canary"}


@pytest.mark.parametrize(("option", "service"), [("", "zookeeper"), (" serviceName=zk", "zk")])
def test_a_kerberos_principal(library: ScriptedLibrary, option: str, service: str) -> None:
    make_exchange = sasl({SASL_JAAS_CONFIG: f"{KERBEROS}{option};"})
    assert callable(make_exchange)
    assert make_exchange("zk1.example.com").evaluate_challenge(b"") == b"hello"
    login = Krb5Login("kafka/h@R", service, uses_keytab=True, keytab="/k", uses_ticket_cache=False, ticket_cache=None)
    assert library.asked == [(login, "zk1.example.com")]


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({SASL_USERNAME: "canary"}, f"Set both {SASL_USERNAME} and {SASL_PASSWORD}, or neither"),
        ({SASL_PASSWORD: "canary"}, f"Set both {SASL_USERNAME} and {SASL_PASSWORD}, or neither"),
        ({**BY_PASSWORD, SASL_JAAS_CONFIG: DIGEST}, f"Set either {SASL_JAAS_CONFIG}, or"),
        ({SASL_JAAS_CONFIG: "canary"}, f"{SASL_JAAS_CONFIG}: Login module control flag not specified"),
        ({SASL_JAAS_CONFIG: f'{DIGEST_MODULE} required password="canary";'}, "has no username or no password"),
        (
            {SASL_JAAS_CONFIG: f'{LOGIN_MODULE} required principal="canary";'},
            "is being asked for a password",
        ),
        ({SASL_JAAS_CONFIG: f"{LOGIN_MODULE} required useKeyTab=true;"}, "needs the principal"),
        ({SASL_JAAS_CONFIG: "org.example.Module required x=canary;"}, "org.example.Module is not supported"),
    ],
)
def test_what_is_wrong_is_named_without_its_value(keys: dict[str, str], reason: str) -> None:
    with pytest.raises(StartupError) as refusal:
        sasl(keys)
    assert reason in str(refusal.value)
    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize("keys", [BY_PASSWORD, {SASL_JAAS_CONFIG: DIGEST}])
def test_without_its_package_it_says_what_to_install(keys: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puresasl", None)
    with pytest.raises(StartupError, match=r"install odradek\[sasl\]"):
        sasl(keys)


def test_kerberos_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "odradek.broker.security.sasl.kerberos.security_contexts", raising=False)
    with pytest.raises(StartupError, match=r"odradek\[gssapi\]"):
        sasl({SASL_JAAS_CONFIG: f"{KERBEROS};"})
