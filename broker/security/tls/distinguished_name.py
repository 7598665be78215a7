"""The text of a distinguished name, as Java prints it in the form of RFC 2253: the principal of a TLS client.

Kafka: DefaultKafkaPrincipalBuilder; Java: X500Principal.getName, AVA.toRFC2253String.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.security.tls.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    DerError,
    Element,
    element,
    elements,
    object_identifier,
)

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""Attributes of which RFC 2253 defines a keyword. All others are printed as number and hexadecimal value."""

_STRINGS: Final = frozenset(
    (
        0x0C,  # UTF8String
        0x13,  # PrintableString
        0x14,  # T61String
        0x16,  # IA5String
        0x1B,  # GeneralString
        0x1E,  # BMPString
    )
)
"""Types that are printed as text. Java reads the bytes of all of them as UTF-8, also where they are not."""

_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SPACES: Final = " \r"


def rfc2253(name: bytes) -> str:
    """The text of an encoded Name, its last part first. Raises: DerError."""
    parts = [
        "+".join(_attribute(attribute) for attribute in elements(part.content))
        for part in elements(element(name, SEQUENCE).content)
        if part.tag == SET
    ]
    return ",".join(reversed(parts))


def _attribute(attribute: Element) -> str:
    fields = list(elements(attribute.content))
    if len(fields) != 2 or fields[0].tag != OBJECT_IDENTIFIER:
        raise DerError("an attribute of a name has a type and a value")
    identifier, value = object_identifier(fields[0].content), fields[1]
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or identifier}=#{value.encoding.hex()}"
    return f"{keyword}={_escape(value.content.decode(errors='replace'))}"


def _escape(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    inner = escaped.lstrip(_SPACES)
    leading = escaped[: len(escaped) - len(inner)]
    kept = inner.rstrip(_SPACES)
    trailing = inner[len(kept) :]
    return "".join(f"\\{char}" for char in leading) + kept + "".join(f"\\{char}" for char in trailing)
