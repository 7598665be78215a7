"""The cases of Apache Kafka's KerberosNameTest and KerberosRuleTest, and what its class does besides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from odradek.broker.security.sasl.kerberos.kerberos_name import KerberosName
from odradek.broker.security.sasl.kerberos.short_namer import KerberosShortNamer, NoShortName, replace_parameters
from odradek.storage.config.config_def import ConfigError

REALM: Final = "REALM.COM"
RANDOM_NAMES: Final = Path(__file__).resolve().parents[5] / "golden" / "kerberos" / "short_names.json"


def short_name(rules: list[str], name: str, default_realm: str = REALM) -> str:
    return KerberosShortNamer(default_realm, rules).short_name(KerberosName.parse(name))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("App.service-name/example.com@REALM.COM", "service-name"),
        ("App.service-name@REALM.COM", "service-name"),
        ("user/host@REALM.COM", "user"),
    ],
)
def test_rules_and_the_default(name: str, short: str) -> None:
    rules = [r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g", r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g", "DEFAULT"]
    assert short_name(rules, name) == short


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("User@REALM.COM", "user"),
        ("TestABC/host@FOO.COM", "test"),
        ("ABC_User_ABC/host@FOO.COM", "xyz_user_xyz"),
        ("App.SERVICE-name/example.com@REALM.COM", "service-name"),
        ("User/root@REALM.COM", "user"),
    ],
)
@pytest.mark.parametrize("case", ["L", "U"])
def test_lower_and_upper_case(name: str, short: str, case: str) -> None:
    rules = [
        f"RULE:[1:$1]/{case}",
        f"RULE:[2:$1](Test.*)s/ABC///{case}",
        f"RULE:[2:$1](ABC.*)s/ABC/XYZ/g/{case}",
        rf"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g/{case}",
        f"RULE:[2:$1]/{case}",
        "DEFAULT",
    ]
    assert short_name(rules, name) == (short if case == "L" else short.upper())


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/g",
        "rule:[1:$1]",
        "rule:[1:$1]/L/U",
        "rule:[1:$1]/U/L",
        "rule:[1:$1]/LU",
        "RULE:[1:$1/L",
        "RULE:[1:$1]/l",
        "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",
        "RULE:[:$1]",
        "RULE:[2147483648:$1]",
        "RULE:[1:$1](*)",
        "RULE:[1:$1]s/(?u)a/b/",
    ],
)
def test_invalid_rules(rule: str) -> None:
    with pytest.raises(ConfigError, match="Invalid rule"):
        KerberosShortNamer(REALM, [rule])


def test_parameters_are_replaced_once() -> None:
    many = ["too", "many", "parameters", "are", "ok"]
    assert replace_parameters("", []) == ""
    assert replace_parameters("hello", []) == "hello"
    assert replace_parameters("", many) == ""
    assert replace_parameters("hello", many) == "hello"
    assert replace_parameters("hello $0", many) == "hello too"
    assert replace_parameters("hello $0", ["no recursion $1"]) == "hello no recursion $1"


@pytest.mark.parametrize("text", ["$0", "hello $a", "$", "$99999999999"])
def test_parameters_that_are_not_there(text: str) -> None:
    with pytest.raises(NoShortName):
        replace_parameters(text, [])


def test_the_default_is_for_the_default_realm_only() -> None:
    assert short_name(["DEFAULT"], "alice@REALM.COM") == "alice"
    assert short_name(["DEFAULT"], "alice") == "alice"
    with pytest.raises(NoShortName, match=r"No rules apply to alice@FOO\.COM, rules \[DEFAULT\]"):
        short_name(["DEFAULT"], "alice@FOO.COM")
    with pytest.raises(NoShortName):
        short_name(["DEFAULT"], "alice@REALM.COM", default_realm="")


def test_a_result_with_a_realm_is_refused() -> None:
    with pytest.raises(
        NoShortName, match=r"Non-simple name alice@REALM\.COM after auth_to_local rule RULE:\[1:\$1@\$0"
    ):
        short_name(["RULE:[1:$1@$0]"], "alice@REALM.COM")


@pytest.mark.parametrize("to", ["$2", "$x", "\\", "${none}"])
def test_a_replacement_that_java_refuses_names_nobody(to: str) -> None:
    with pytest.raises(NoShortName):
        short_name([f"RULE:[1:$1]s/(a)/{to}/"], "alice@REALM.COM")


def test_names_by_random_rules_are_those_of_apache_kafka() -> None:
    """Captured by tests/golden/kerberos/CaptureShortNames.java: null, where Apache's class refuses rules or a name."""
    cases = json.loads(RANDOM_NAMES.read_text())
    assert len(cases) == 500
    for rules, name, expected in cases:
        try:
            found: str | None = short_name(rules, name)
        except (NoShortName, ConfigError, ValueError):
            found = None
        assert found == expected, (rules, name)
