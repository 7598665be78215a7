"""With a stand-in for the package `gssapi`, which `make test` does not have. `tests/kerberos` has the real one."""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import pytest

from odradek.broker.security.sasl.kerberos.exchanges import SecurityContextError
from odradek.broker.security.sasl.kerberos.krb5_login import Krb5Login
from odradek.storage.config.config_def import ConfigError

MODULE: Final = "odradek.broker.security.sasl.kerberos.security_contexts"
MIT_ERRORS: Final = 2**32 - 1765328384
"""The number of the protocol's error 0, as the package has it: without a sign."""


class GSSError(Exception):
    def __init__(self, code: int, text: str) -> None:
        self.maj_code, self.min_code, self._text = 851968, MIT_ERRORS + code, text

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        return ["Unspecified GSS failure"] if is_major else [self._text]


class Name(bytes):
    def __new__(cls, text: str, kind: object) -> Name:
        return super().__new__(cls, text.encode())

    def canonicalize(self, mechanism: object) -> bytes:
        return bytes(self) + b"@EXAMPLE.COM"


class Flags(enum.IntFlag):
    mutual_authentication = 1
    integrity = 2
    confidentiality = 4
    replay_detection = 8
    out_of_sequence_detection = 16


class Context:
    """Fails with `failure`, if there is one."""

    failure: GSSError | None = None
    initiator_name: Any = b"alice@EXAMPLE.COM"
    complete = True

    def __init__(self, **arguments: object) -> None:
        self.arguments = arguments

    def step(self, token: bytes | None) -> bytes:
        if self.failure is not None:
            raise self.failure
        return b"after " + (token or b"nothing")


class Credentials:
    """Of every store but those in `missing`."""

    missing: tuple[str, ...] = ()
    asked: list[Mapping[str, str]] = []  # noqa: RUF012
    lifetime = 3600

    def __init__(self, *, store: Mapping[str, str] | None, **arguments: object) -> None:
        self.asked.append(store or {})
        if any(text in self.missing for text in (store or {}).values()):
            raise GSSError(195, "not found")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    package, exceptions = ModuleType("gssapi"), ModuleType("gssapi.exceptions")
    kinds = type("Kinds", (), {"kerberos": "krb5", "user": "u", "kerberos_principal": "p", "hostbased_service": "s"})
    parts = {"MechType": kinds, "NameType": kinds, "RequirementFlag": Flags, "Name": Name}
    for name, part in {**parts, "SecurityContext": Context, "Credentials": Credentials}.items():
        setattr(package, name, part)
    exceptions.GSSError = GSSError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gssapi", package)
    monkeypatch.setitem(sys.modules, "gssapi.exceptions", exceptions)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    monkeypatch.setattr(Credentials, "asked", [])
    yield importlib.import_module(MODULE)
    sys.modules.pop(MODULE, None)


def login(**changes: object) -> Krb5Login:
    return Krb5Login("kafka/h@R", "kafka", True, "/k", False, None)._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "is_transient"), [(21, True), (33, True), (34, True), (7, False), (31, False)])
def test_some_failures_may_pass(library: Any, monkeypatch: pytest.MonkeyPatch, code: int, is_transient: bool) -> None:
    monkeypatch.setattr(Context, "failure", GSSError(code, "why it fails"))
    context = library.load_acceptor(login())()
    with pytest.raises(SecurityContextError, match=r"^why it fails$") as failure:
        context.step(b"token")
    assert failure.value.is_transient == is_transient


def test_a_listener_uses_its_keytab(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = library.load_acceptor(login())()
    assert (context.step(b"token"), context.is_established()) == (b"after token", True)
    assert context.initiator_name() == "alice@EXAMPLE.COM"
    assert Credentials.asked == [{"keytab": "FILE:/k"}]
    monkeypatch.setattr(Credentials, "missing", ("FILE:/k",))
    with pytest.raises(ConfigError, match=r"cannot use the keytab /k for kafka/h@R: not found"):
        library.load_acceptor(login())


def test_a_name_that_is_no_text_is_refused(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "initiator_name", b"\xff")
    with pytest.raises(SecurityContextError, match="no text"):
        library.load_acceptor(login())().initiator_name()


def test_the_tickets_of_a_keytab_are_in_memory(library: Any) -> None:
    assert library.make_initiator(login(), "h").step(b"") == b"after nothing"
    library.make_initiator(login(keytab="/other"), "h")
    first, second = Credentials.asked
    assert first["client_keytab"] == "FILE:/k"
    assert first["ccache"].startswith("MEMORY:")
    assert first["ccache"] != second["ccache"], "of another keytab"


def test_a_ticket_cache_comes_first(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    both = login(uses_ticket_cache=True, ticket_cache="/c")
    library.make_initiator(both, "h")
    assert Credentials.asked == [{"ccache": "FILE:/c"}]
    monkeypatch.setattr(Credentials, "missing", ("FILE:/c",))
    library.make_initiator(both, "h")
    assert Credentials.asked[-1]["client_keytab"] == "FILE:/k"
    with pytest.raises(SecurityContextError, match=r"^no ticket for kafka/h@R by the ticket cache /c: not found$"):
        library.make_initiator(both._replace(uses_keytab=False), "h")


def test_the_default_realm(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.default_realm() == "EXAMPLE.COM"

    def has_none(name: Name, mechanism: object) -> bytes:
        raise GSSError(0, "no default realm")

    monkeypatch.setattr(Name, "canonicalize", has_none)
    assert library.default_realm() == ""
