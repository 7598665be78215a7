from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.tls.der import DerError
from odradek.broker.security.tls.pkcs12_decryption import UnknownEncryption
from odradek.broker.security.tls.pkcs12_entries import trusted_certificates
from tests.support.certificates import PASSWORD

GOLDEN = Path(__file__).parents[4] / "golden" / "pkcs12_stores.json"


class Store(TypedDict):
    """A store as keytool and openssl have made it, and what keytool of Java 17 shows of it."""

    made_by: list[str]
    entries: dict[str, str]
    trusted: list[str]
    store: str


STORES: dict[str, Store] = json.loads(GOLDEN.read_text())
NOT_ENCRYPTED = "trusted, not encrypted"


@pytest.mark.parametrize("name", STORES)
def test_what_java_trusts_in_a_store(name: str) -> None:
    store = STORES[name]
    assert sorted(_names(trusted_certificates(_content(name), PASSWORD))) == store["trusted"]


def test_without_a_password_what_is_encrypted_is_left_out() -> None:
    assert trusted_certificates(_content("trusted"), None) == []
    assert _names(trusted_certificates(_content(NOT_ENCRYPTED), None)) == ["root"]


@given(at=st.integers(0), byte=st.integers(0, 255))
def test_a_damaged_store_has_entries_or_is_refused(at: int, byte: int) -> None:
    content = bytearray(_content(NOT_ENCRYPTED))
    content[at % len(content)] = byte
    with suppress(DerError, UnknownEncryption):
        trusted_certificates(bytes(content), PASSWORD)


def _content(name: str) -> bytes:
    return base64.b64decode(STORES[name]["store"])


def _names(certificates: list[bytes]) -> list[str]:
    subjects = [x509.load_der_x509_certificate(certificate).subject for certificate in certificates]
    return [str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value) for subject in subjects]
