from __future__ import annotations

import sys

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.principal_builder import PrincipalRefused
from odradek.broker.security.sasl.kerberos.short_names import load_short_names

RULES = "sasl.kerberos.principal.to.local.rules"


@pytest.fixture(autouse=True)
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no default realm then."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "odradek.broker.security.sasl.kerberos.security_contexts", raising=False)


def test_a_listener_has_rules_of_its_own() -> None:
    settings = {RULES: "RULE:[1:$1]/U,DEFAULT", f"listener.name.auth.{RULES}": "RULE:[1:$1]/L"}
    config = BrokerConfig(settings)
    assert load_short_names(config, "AUTH")("Alice@REALM") == "alice"
    assert load_short_names(config, "OTHER")("Alice@REALM") == "ALICE"


def test_a_name_that_no_rule_takes_is_refused() -> None:
    short_name = load_short_names(BrokerConfig({}), "AUTH")
    with pytest.raises(PrincipalRefused, match=r"Failed to set name for 'alice@REALM'.*No rules apply to alice@REALM"):
        short_name("alice@REALM")
    with pytest.raises(PrincipalRefused, match="Malformed Kerberos name"):
        short_name("a/b/c@REALM")


def test_an_invalid_rule_refuses_the_start() -> None:
    with pytest.raises(StartupError, match=rf"Listener AUTH: {RULES}: Invalid rule: nothing"):
        load_short_names(BrokerConfig({RULES: "nothing"}), "AUTH")
