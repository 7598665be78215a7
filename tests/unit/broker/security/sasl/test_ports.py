from __future__ import annotations

from odradek.broker.security.sasl.ports import JaasEntry


def test_the_repr_of_an_entry_hides_its_options() -> None:
    entry = JaasEntry("org.apache.kafka.common.security.plain.PlainLoginModule", {"password": "secret"})
    assert "secret" not in f"{entry!r} {entry}"
