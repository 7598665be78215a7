"""DER, and the parts of an X.509 certificate that Kafka reads: its subject and its alternative names.

`cryptography` reads certificates, too, but a broker with PEM stores does not need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
SET: Final = 0x31
INTEGER: Final = 0x02
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
_EXPLICIT_VERSION: Final = 0xA0
_EXPLICIT_EXTENSIONS: Final = 0xA3
_IDENTIFIER_BYTES_MAX: Final = 1024
"""Numbers of longer object identifiers would take long to print. Java's limit is 4096."""

_SUBJECT_ALT_NAME: Final = bytes((0x55, 0x1D, 0x11))


class Element(NamedTuple):
    """One value: its tag, its content, and the whole encoding."""

    tag: int
    content: bytes
    encoding: bytes


class DerError(ValueError):
    """Bytes that are no DER."""


class CertificateNames(NamedTuple):
    """The names of a certificate's owner."""

    subject: bytes
    """The encoded Name."""
    alternative_names: frozenset[bytes]
    """The encoded GeneralNames of subjectAltName."""


def elements(data: bytes) -> Iterator[Element]:
    """The values that are encoded one behind the other. Raises: DerError."""
    at = 0
    while at < len(data):
        element = _element(data, at)
        at += len(element.encoding)
        yield element


def element(data: bytes, tag: int) -> Element:
    """The one value of `data`, which has the tag. Raises: DerError."""
    found = list(elements(data))
    if len(found) != 1 or found[0].tag != tag:
        raise DerError(f"a value with tag {tag:#x} was expected")
    return found[0]


def values(data: bytes, *tags: int) -> list[Element]:
    """The values of `data`, the first of which have these tags. Raises: DerError."""
    found = list(elements(data))
    if [field.tag for field in found[: len(tags)]] != list(tags):
        raise DerError(f"values with the tags {', '.join(map(hex, tags))} were expected")
    return found


def object_identifier(content: bytes) -> str:
    """The dotted form. Raises: DerError."""
    if len(content) > _IDENTIFIER_BYTES_MAX:
        raise DerError(f"an object identifier has more than {_IDENTIFIER_BYTES_MAX} bytes")
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers or content[-1] & 0x80:
        raise DerError("an object identifier is not complete")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def certificate_names(certificate: bytes) -> CertificateNames:
    """The names in an encoded certificate. Raises: DerError."""
    signed = list(elements(element(certificate, SEQUENCE).content))
    if not signed or signed[0].tag != SEQUENCE:
        raise DerError("not a certificate")
    fields = [field for field in elements(signed[0].content) if field.tag != _EXPLICIT_VERSION]
    # serial number, signature algorithm, issuer, validity, subject, public key, then optional fields
    if len(fields) < 6 or fields[4].tag != SEQUENCE:
        raise DerError("not a certificate")
    extensions = next((field.content for field in fields[6:] if field.tag == _EXPLICIT_EXTENSIONS), None)
    return CertificateNames(fields[4].encoding, frozenset(_alternative_names(extensions)))


def _alternative_names(extensions: bytes | None) -> Iterator[bytes]:
    if extensions is None:
        return
    for extension in elements(element(extensions, SEQUENCE).content):
        fields = list(elements(extension.content))
        if len(fields) > 1 and fields[0].content == _SUBJECT_ALT_NAME and fields[-1].tag == OCTET_STRING:
            for name in elements(element(fields[-1].content, SEQUENCE).content):
                yield name.encoding


def _element(data: bytes, at: int) -> Element:
    if len(data) < at + 2 or data[at] & 0x1F == 0x1F:
        raise DerError("a tag or a length is not complete")
    length, begin = data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or len(data) < begin + size:
            raise DerError("a length is not valid")
        length = int.from_bytes(data[begin : begin + size], "big")
        begin += size
    if len(data) < begin + length:
        raise DerError("a value is not complete")
    return Element(data[at], data[begin : begin + length], data[at : begin + length])
