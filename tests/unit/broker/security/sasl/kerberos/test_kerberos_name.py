from __future__ import annotations

import pytest

from odradek.broker.security.sasl.kerberos.kerberos_name import KerberosName, MalformedName


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("App.service-name/example.com@REALM.COM", ("App.service-name", "example.com", "REALM.COM")),
        ("App.service-name@REALM.COM", ("App.service-name", None, "REALM.COM")),
        ("user/host@REALM.COM", ("user", "host", "REALM.COM")),
        ("user/@", ("user", "", "")),
        ("user", ("user", None, None)),
        ("user/host", ("user/host", None, None)),
    ],
)
def test_parts_of_a_name(text: str, parts: tuple[str, str | None, str | None]) -> None:
    name = KerberosName.parse(text)
    assert (name.service_name, name.host_name, name.realm) == parts
    assert str(name) == text


@pytest.mark.parametrize("text", ["a/b/c@REALM", "a@b@c", "a@b/c"])
def test_names_with_more_parts_are_malformed(text: str) -> None:
    with pytest.raises(MalformedName, match=f"Malformed Kerberos name: {text}"):
        KerberosName.parse(text)
