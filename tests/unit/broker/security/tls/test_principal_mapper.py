"""The cases of Kafka's SslPrincipalMapperTest, and what a hostile name or rule can do."""

from __future__ import annotations

import pytest

from odradek.broker.security.tls.principal_mapper import NoMatchingRule, SslPrincipalMapper
from odradek.storage.config.config_def import ConfigError


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULT",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
        "RULE:^cn=(.?),ou=(.?),dc=(.?),dc=(.?)$/$1@$2/U",
        "RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/",
        "RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/",
    ],
)
def test_valid_rules(rules: str) -> None:
    SslPrincipalMapper(rules)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:^CN=(/$1/",
        "RULE:(?u)CN=a/b/",  # not with the classes of ASCII
    ],
)
def test_invalid_rules(rules: str) -> None:
    with pytest.raises(ConfigError, match="Invalid rule: "):
        SslPrincipalMapper(rules)


RULES = ", ".join(
    (
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    )
)


@pytest.mark.parametrize(
    ("rules", "distinguished_name", "name"),
    [
        (RULES, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (RULES, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (RULES, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (RULES, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT", r"CN=Tkac\, Adam,OU=ITZ,DC=geodis,DC=cz", r"Tkac\, Adam"),
        ("RULE:^CN=(.*)$/$1@$2/", "CN=a", "a@$2"),  # no second group
        ("RULE:^CN=(.*)$/$12/", "CN=a", "a2"),  # no twelfth group, but a first one
        (r"RULE:^CN=(.*)$/\$1/", "CN=a", "$1"),
        ("RULE:^CN=a(b)?$/[$1]/", "CN=a", "[]"),
    ],
)
def test_names_by_rules(rules: str, distinguished_name: str, name: str) -> None:
    assert SslPrincipalMapper(rules).name_of(distinguished_name) == name


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("", "[]"),
        ("DEFAULT", "[DEFAULT]"),
        ("RULE://", "[RULE:/]"),
        ("RULE:/.*/", "[RULE:/.*]"),
        ("RULE:/.*/L", "[RULE:/.*/L]"),
        ("RULE://,DEFAULT", "[RULE:/, DEFAULT]"),
        ("  RULE:// ,  DEFAULT  ", "[RULE:/, DEFAULT]"),
        ("  RULE:   /     / ,  DEFAULT  ", "[RULE:   /     , DEFAULT]"),
        ("  RULE:  /     /U   ,DEFAULT  ", "[RULE:  /     /U, DEFAULT]"),
        (
            "  RULE:([A-Z]*)/$1/U   ,RULE:([a-z]+)/$1/,   DEFAULT  ",
            "[RULE:([A-Z]*)/$1/U, RULE:([a-z]+)/$1, DEFAULT]",
        ),
        (",   , , ,      , , ,   ", "[]"),
        (",,RULE://,,,DEFAULT,,", "[RULE:/, DEFAULT]"),
        (",  , RULE: /   /    ,,,   DEFAULT, ,   ", "[RULE: /   , DEFAULT]"),
        ("     ,  , RULE:   /  /U    ,,  ,DEFAULT, ,", "[RULE:   /  /U, DEFAULT]"),
        (r"RULE:\/\\\(\)\n\t/\/\/\//", r"[RULE:\/\\\(\)\n\t/\/\/\/]"),
        (
            r"RULE:,RULE:,/,RULE:,\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,RULE:, DEFAULT, /DEFAULT/,DEFAULT",
            r"[RULE:,RULE:,/,RULE:,\//U, RULE:,/RULE:,, RULE:,RULE:,/L,RULE:,/L, RULE:, DEFAULT, /DEFAULT, DEFAULT]",
        ),
    ],
)
def test_how_rules_are_split(rules: str, expected: str) -> None:
    assert str(SslPrincipalMapper(rules)) == f"SslPrincipalMapper(rules = {expected})"


@pytest.mark.parametrize(
    ("expression", "name", "ascii_name"),
    [
        (r"CN=\w+", "CN=Jürgen", "CN=Juergen"),
        (r"CN=\d+", "CN=١", "CN=1"),
        (r"CN=a\sb", "CN=a b", "CN=a b"),
        ("(?i)CN=Ä|cn=a", "CN=ä", "CN=A"),
    ],
)
def test_classes_and_cases_are_those_of_ascii(expression: str, name: str, ascii_name: str) -> None:
    mapper = SslPrincipalMapper(f"RULE:{expression}/matched/,DEFAULT")
    assert mapper.name_of(name) == name
    assert mapper.name_of(ascii_name) == "matched"


def test_a_name_without_a_rule_is_refused() -> None:
    mapper = SslPrincipalMapper("RULE:^CN=(.*?),OU=x$/$1/")
    with pytest.raises(NoMatchingRule, match="No rules apply to CN=y"):
        mapper.name_of("CN=y")


def test_a_huge_name_is_not_matched() -> None:
    mapper = SslPrincipalMapper("DEFAULT")
    assert mapper.name_of("x" * 65_536)
    with pytest.raises(NoMatchingRule):
        mapper.name_of("x" * 65_537)
