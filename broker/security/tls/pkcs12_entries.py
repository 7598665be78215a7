"""The entries of a PKCS12 file as Java has them: which certificates a trust store trusts.

Each certificate lies in a bag with attributes. One with Java's attribute trustedKeyUsage is an entry of its own, which
is trusted: `keytool -importcert` and `openssl pkcs12 -jdktrust` set it. Any other only belongs to the chain of a key.
Of a key with its chain the first certificate is trusted, that of the key itself, and not the authorities that have
signed it: an operator who gives the key store of a broker as its trust store does not mean all clients of a public
authority.

`cryptography` returns certificates without attributes, so the bags are read here.

Java: PKCS12KeyStore.engineLoad, TrustStoreUtil.getTrustedCerts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.security.tls.der import (
    INTEGER,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    SET,
    DerError,
    Element,
    element,
    elements,
    object_identifier,
    values,
)
from odradek.broker.security.tls.pkcs12_decryption import decrypt

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPLICIT: Final = 0xA0
_IMPLICIT: Final = 0x80

_DATA: Final = "1.2.840.113549.1.7.1"
_ENCRYPTED_DATA: Final = "1.2.840.113549.1.7.6"
_SHROUDED_KEY_BAG: Final = "1.2.840.113549.1.12.10.1.2"
_CERTIFICATE_BAG: Final = "1.2.840.113549.1.12.10.1.3"
_FRIENDLY_NAME: Final = "1.2.840.113549.1.9.20"
_LOCAL_KEY_ID: Final = "1.2.840.113549.1.9.21"
_TRUSTED_KEY_USAGE: Final = "2.16.840.1.113894.746875.1.1"
_ONLY_KEY_ID: Final = b"01"
"""Java gives it to a key without an id, and to the certificate that comes first after it."""


class _Bag(NamedTuple):
    kind: str
    value: bytes
    alias: str | None
    """Java does not distinguish upper and lower case."""
    key_id: bytes | None
    is_trusted: bool


class _Key(NamedTuple):
    alias: str
    key_id: bytes


class _ChainCertificate(NamedTuple):
    alias: str | None
    key_id: bytes | None
    certificate: bytes


def trusted_certificates(content: bytes, password: str | None) -> list[bytes]:
    """The encoded certificates that Java trusts if `content` is a trust store. The checksum is not verified.

    `password` None: encrypted parts are left out, as in Java. Raises: DerError, UnknownEncryption.
    """
    entries: dict[str, _Key | bytes] = {}
    chains: list[_ChainCertificate] = []
    keys = unnamed = 0
    for safe in _safes(content, password):
        for at, bag in enumerate(safe):
            key_id = bag.key_id
            if bag.kind == _SHROUDED_KEY_BAG:
                keys += 1
                if key_id is None and keys > 1:
                    continue
            elif bag.kind != _CERTIFICATE_BAG:
                continue
            elif not bag.is_trusted:
                if key_id is None and keys == 1 and at == 0:
                    key_id = _ONLY_KEY_ID
                chains.append(_ChainCertificate(bag.alias, key_id, bag.value))
                continue
            alias = bag.alias
            if alias is None:
                unnamed += 1
                alias = str(unnamed)
            if bag.kind == _SHROUDED_KEY_BAG:
                entries[alias] = _Key(alias, key_id or _ONLY_KEY_ID)
            else:
                entries[alias] = bag.value
    found = (entry if isinstance(entry, bytes) else _certificate_of(entry, chains) for entry in entries.values())
    return list(dict.fromkeys(certificate for certificate in found if certificate is not None))


def _certificate_of(key: _Key, chains: list[_ChainCertificate]) -> bytes | None:
    """Java: PKCS12KeyStore.findMatchedCertificate."""
    by_alias = by_key_id = None
    for alias, key_id, certificate in chains:
        if key_id == key.key_id:
            by_key_id = certificate
            if alias == key.alias:
                break
        elif alias == key.alias:
            by_alias = certificate
    return by_alias if by_key_id is None else by_key_id


def _safes(content: bytes, password: str | None) -> Iterator[list[_Bag]]:
    """The bags of each part."""
    _, outer = values(element(content, SEQUENCE).content, INTEGER, SEQUENCE)[:2]
    for part in elements(element(_data(outer), SEQUENCE).content):
        identifier, inner = values(part.content, OBJECT_IDENTIFIER, _EXPLICIT)[:2]
        if object_identifier(identifier.content) != _ENCRYPTED_DATA:
            safe = _data(part)
        elif password is not None:
            _, encrypted = values(element(inner.content, SEQUENCE).content, INTEGER, SEQUENCE)[:2]
            _, algorithm, data = values(encrypted.content, OBJECT_IDENTIFIER, SEQUENCE, _IMPLICIT)[:3]
            safe = decrypt(algorithm.content, data.content, password)
        else:
            continue
        yield [_bag(bag) for bag in elements(element(safe, SEQUENCE).content)]


def _data(content_info: Element) -> bytes:
    identifier, inner = values(content_info.content, OBJECT_IDENTIFIER, _EXPLICIT)[:2]
    if object_identifier(identifier.content) != _DATA:
        raise DerError("a part is neither data nor encrypted with the password")
    return element(inner.content, OCTET_STRING).content


def _bag(bag: Element) -> _Bag:
    identifier, explicit, *more = values(bag.content, OBJECT_IDENTIFIER, _EXPLICIT)
    kind, value = object_identifier(identifier.content), explicit.content
    if kind == _CERTIFICATE_BAG:
        _, certificate = values(element(value, SEQUENCE).content, OBJECT_IDENTIFIER, _EXPLICIT)[:2]
        value = element(certificate.content, OCTET_STRING).content
    attributes: dict[str, bytes] = {}
    for attribute in elements(more[0].content) if more else ():
        name, found = values(attribute.content, OBJECT_IDENTIFIER, SET)[:2]
        for first in elements(found.content):
            attributes.setdefault(object_identifier(name.content), first.content)
    alias = attributes.get(_FRIENDLY_NAME)
    return _Bag(
        kind,
        value,
        None if alias is None else alias.decode("utf-16-be", "replace").lower(),
        attributes.get(_LOCAL_KEY_ID),
        _TRUSTED_KEY_USAGE in attributes,
    )
