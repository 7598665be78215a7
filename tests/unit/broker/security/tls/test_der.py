from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.tls.der import DerError, certificate_names, elements, object_identifier
from tests.support.certificates import Authority

IDENTITY = Authority().issue("broker", hosts=("a.example", "10.0.0.1"))
CERTIFICATE = IDENTITY.certificate.public_bytes(Encoding.DER)


def test_the_names_of_a_certificate() -> None:
    names = certificate_names(CERTIFICATE)
    assert names.subject == IDENTITY.certificate.subject.public_bytes()
    assert names.alternative_names == {b"\x82\x09a.example", b"\x87\x04\x0a\x00\x00\x01"}


def test_a_certificate_without_alternative_names() -> None:
    identity = Authority().issue("client", hosts=())
    assert certificate_names(identity.certificate.public_bytes(Encoding.DER)).alternative_names == frozenset()


@pytest.mark.parametrize(
    ("content", "dotted"),
    [("550403", "2.5.4.3"), ("2a864886f70d010901", "1.2.840.113549.1.9.1"), ("883703", "2.999.3")],
)
def test_object_identifiers(content: str, dotted: str) -> None:
    assert object_identifier(bytes.fromhex(content)) == dotted


@pytest.mark.parametrize("content", ["", "5584"])
def test_an_incomplete_object_identifier_is_refused(content: str) -> None:
    with pytest.raises(DerError):
        object_identifier(bytes.fromhex(content))


def test_a_long_object_identifier_is_refused_before_it_is_computed() -> None:
    assert object_identifier(b"\x55" + b"\x84" * 1022 + b"\x03").startswith("2.5.")
    with pytest.raises(DerError, match="1024"):
        object_identifier(b"\x55" + b"\x84" * 1023 + b"\x03")


@pytest.mark.parametrize("extension", ["3000", "3005" + "0603551d11"])
def test_an_extension_without_an_identifier_or_a_value_is_left_out(extension: str) -> None:
    extensions = bytes.fromhex(extension)
    fields = b"\x02\x01\x01" + b"\x30\x00" * 5 + _encoded(0xA3, _encoded(0x30, extensions))
    certificate = _encoded(0x30, _encoded(0x30, fields))
    assert certificate_names(certificate).alternative_names == frozenset()


def _encoded(tag: int, content: bytes) -> bytes:
    return bytes((tag, len(content))) + content


@pytest.mark.parametrize("encoded", ["30", "3080", "3085", "308400", "300500", "1f0101"])
def test_incomplete_values_are_refused(encoded: str) -> None:
    with pytest.raises(DerError):
        list(elements(bytes.fromhex(encoded)))


@given(st.binary(max_size=64), st.integers(0, len(CERTIFICATE) - 1))
def test_hostile_certificates_raise_nothing_else(inserted: bytes, at: int) -> None:
    with suppress(DerError):
        certificate_names(CERTIFICATE[:at] + inserted + CERTIFICATE[at + len(inserted) :])
